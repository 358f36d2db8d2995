"""Scalars: sizes, bounds and constants as values."""

from __future__ import annotations

from functools import reduce

from backends.gpu.tile import Bits
from ir.spec import INTEGERS, Apply, Expr, Index, Number

ZERO = Number(0)


def settled(expr: Expr) -> Expr:
    """The size that a bound does not exceed for any tile: minimum(moving, N) -> N.

    Elements of a tile between such a bound and N do not matter: they hold an identity element, or
    do not exist, as split-K parts are whole tiles.
    """
    if isinstance(expr, Apply) and expr.function == "minimum":
        still = [a for a in expr.args if not moves(a)]
        if len(still) == 1:
            return still[0]
    return expr


def moves(expr: Expr) -> bool:
    """Whether a size expression contains the origin of a tile."""
    return any(isinstance(n, Index) for n in expr.walk())


def typed(value: float | int, dtype: str) -> Number:
    """A constant of a dtype; infinity becomes the largest or least integer of an integer dtype."""
    if dtype == "b8":
        return Number(bool(value))
    if dtype in INTEGERS:
        if value in (float("inf"), -float("inf")):
            most = 63 if dtype == "i64" else 31
            return Number((1 << most) - 1 if value > 0 else -(1 << most))
        return Number(int(value))
    return Number(float(value))


def total(parts: list[Expr]) -> Expr:
    """A sum; 0 if it is empty."""
    found = [p for p in parts if p != ZERO]
    return reduce(lambda a, b: Apply("add", (a, b)), found) if found else ZERO


def product(parts: list[Expr]) -> Expr:
    """A product; 1 if it is empty."""
    return reduce(times, parts) if parts else Number(1)


def times(a: Expr, b: Expr) -> Expr:
    """The product of two expressions."""
    return Apply("mul", (a, b))


def scaled(expr: Expr, number: int) -> Expr:
    """A number times an expression."""
    return expr if number == 1 else times(expr, Number(number))


def signed(expr: Expr) -> Expr:
    """The expression with negative summands subtracted: a + -1 -> a - 1."""
    if not isinstance(expr, Apply) or expr.function != "add":
        return expr
    left, right = expr.args
    if isinstance(right, Number) and right.value < 0:
        return Apply("sub", (left, Number(-right.value)))
    if isinstance(right, Apply) and _first_negative(right):
        inner = signed(Apply("add", (left, right.args[0])))
        return Apply(right.function, (inner, right.args[1]))
    return expr


def _first_negative(expr: Expr) -> bool:
    if isinstance(expr, Apply) and expr.function in ("add", "sub"):
        return _first_negative(expr.args[0])
    return isinstance(expr, Number) and expr.value < 0


def adds(expr: Expr) -> bool:
    """Whether an expression contains a sum or a difference."""
    return any(isinstance(n, Apply) and n.function in ("add", "sub") for n in expr.walk())


def bits(count: Expr) -> Expr:
    """The number of bits of a number of entries."""
    match count:
        case Number(int() as known):
            return Number(known.bit_length())
    return Bits(count)
