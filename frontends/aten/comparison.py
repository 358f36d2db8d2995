"""Comparisons, tests, logic, and operators on bits."""

from __future__ import annotations

from frontends.aten.table import Rule, rule
from frontends.builder import Builder, Meta, Value
from frontends.expressions import Term, both, call, cast, either
from ir.dtypes import is_float
from ir.spec import Expr

Operand = Value | Term

_OF_TWO = {
    "eq": ("eq",),
    "ne": ("ne", "not_equal"),
    "lt": ("lt", "less"),
    "gt": ("gt", "greater"),
    "le": ("le", "less_equal"),
    "ge": ("ge", "greater_equal"),
    "and": ("bitwise_and", "__and__"),
    "or": ("bitwise_or", "__or__"),
    "xor": ("bitwise_xor", "__xor__"),
    "shl": ("bitwise_left_shift", "__lshift__"),
    "shr": ("bitwise_right_shift", "__rshift__"),
}


def _of_two(function: str) -> Rule:
    def compared(b: Builder, out: Meta, self: Operand, other: Operand) -> Value:
        return b.pointwise(out, lambda x, y: call(function, x, y), self, other)

    return compared


for _name, _operators in _OF_TWO.items():
    rule(*_operators)(_of_two(_name))


@rule("bitwise_not")
def bitwise_not(b: Builder, out: Meta, self: Value) -> Value:
    return b.pointwise(out, lambda x: call("not", x), self)


def _logical(function: str) -> Rule:
    def joined(b: Builder, out: Meta, self: Value, other: Value) -> Value:
        return b.pointwise(out, lambda x, y: call(function, x, y), self, other, compute="b8")

    return joined


for _name in ("and", "or", "xor"):
    rule(f"logical_{_name}")(_logical(_name))


@rule("logical_not")
def logical_not(b: Builder, out: Meta, self: Value) -> Value:
    return b.pointwise(out, lambda x: call("not", x), self, compute="b8")


def _test(function: str, of_integers: bool) -> Rule:
    """of_integers: what the test says of them."""

    def tested(b: Builder, out: Meta, self: Value) -> Value:
        if is_float(self.dtype):
            return b.pointwise(out, lambda x: call(function, x), self)
        return b.define(out, lambda *_: of_integers)

    return tested


rule("isnan")(_test("isnan", False))
rule("isinf")(_test("isinf", False))
rule("isfinite")(_test("isfinite", True))


@rule("isclose")
def isclose(
    b: Builder,
    out: Meta,
    self: Value,
    other: Value,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> Value:
    """Equal, or both finite and apart by `atol + rtol * |other|` at most."""
    real = is_float(self.dtype)

    def close(x: Expr, y: Expr) -> Expr:
        wide_x, wide_y = (x, y) if real else (cast("f32", x), cast("f32", y))
        apart = call("abs", wide_x - wide_y)
        near = apart <= atol + rtol * call("abs", wide_y)
        made = either(call("eq", x, y), both(near, call("isfinite", apart)) if real else near)
        return either(made, both(call("ne", x, x), call("ne", y, y))) if equal_nan else made

    return b.pointwise(out, close, self, other)
