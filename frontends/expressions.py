"""Expressions: how rules write the right sides of equations."""

from __future__ import annotations

import math

from ir.functions import POINTWISE
from ir.spec import Apply, Cast, Expr, Number

Term = Expr | float | int | bool  # what stands for an expression: constants become Numbers


def expr(term: Term) -> Expr:
    """A term as an expression. NaN, which has no text, is infinity less infinity."""
    if isinstance(term, float) and math.isnan(term):
        return Number(math.inf) - math.inf
    return term if isinstance(term, Expr) else Number(term)


def call(function: str, *terms: Term) -> Expr:
    """A pointwise function of `ir/functions.py`, by name: `call("exp", x)`."""
    made = tuple(map(expr, terms))
    if len(made) != POINTWISE[function].arity:
        raise AssertionError(f"`{function}` takes {POINTWISE[function].arity}, not {len(made)}")
    return Apply(function, made)


def where(condition: Term, yes: Term, no: Term) -> Expr:
    """One of two, by a truth value."""
    return call("where", condition, yes, no)


def cast(dtype: str, term: Term) -> Expr:
    """The value in a dtype of the language."""
    return Cast(dtype, expr(term))


def both(*terms: Term) -> Expr:
    """Whether all hold; true where there are none."""
    return _joined("and", terms)


def either(*terms: Term) -> Expr:
    """Whether one holds."""
    return _joined("or", terms)


def _joined(function: str, terms: tuple[Term, ...]) -> Expr:
    if not terms:
        return Number(function == "and")
    made = expr(terms[0])
    for term in terms[1:]:
        made = call(function, made, term)
    return made


def constant(size: Expr) -> int | None:
    """The number of a size, None where it is symbolic."""
    return int(size.value) if isinstance(size, Number) else None


def product(sizes: tuple[Expr, ...]) -> Expr:
    """The product of sizes, worked out where they are numbers."""
    made: Expr = Number(1)
    for size in sizes:
        made = times(made, size)
    return made


def times(a: Expr, b: Expr) -> Expr:
    """The product of two sizes."""
    if isinstance(a, Number) and isinstance(b, Number):
        return Number(a.value * b.value)
    if Number(0) in (a, b):
        return Number(0)
    if a == Number(1):
        return b
    return a if b == Number(1) else Apply("mul", (a, b))


def plus(a: Expr, b: Expr) -> Expr:
    """The sum of two sizes."""
    if isinstance(a, Number) and isinstance(b, Number):
        return Number(a.value + b.value)
    if a == Number(0):
        return b
    return a if b == Number(0) else Apply("add", (a, b))


def minus(a: Expr, b: Expr) -> Expr:
    """The difference of two sizes."""
    if isinstance(a, Number) and isinstance(b, Number):
        return Number(a.value - b.value)
    return a if b == Number(0) else Apply("sub", (a, b))


def quotient(a: Expr, b: Expr) -> Expr:
    """The quotient of two sizes, rounded down."""
    if isinstance(a, Number) and isinstance(b, Number):
        return Number(a.value // b.value)
    return a if b == Number(1) else Apply("floordiv", (a, b))
