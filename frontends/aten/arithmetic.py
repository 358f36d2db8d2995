"""Arithmetic operators: sums, products, quotients, powers and what bounds numbers."""

from __future__ import annotations

from frontends.aten.table import rule
from frontends.builder import Builder, Meta, Value
from frontends.expressions import Term, call, either, where
from ir.dtypes import is_float
from ir.spec import Expr

Operand = Value | Term


@rule("add")
def add(b: Builder, out: Meta, self: Operand, other: Operand, alpha: Term = 1) -> Value:
    return b.pointwise(out, lambda x, y: x + _times(y, alpha), self, other)


@rule("sub", "subtract")
def sub(b: Builder, out: Meta, self: Operand, other: Operand, alpha: Term = 1) -> Value:
    return b.pointwise(out, lambda x, y: x - _times(y, alpha), self, other)


@rule("rsub")
def rsub(b: Builder, out: Meta, self: Operand, other: Operand, alpha: Term = 1) -> Value:
    return b.pointwise(out, lambda x, y: y - _times(x, alpha), self, other)


def _times(x: Expr, factor: Term) -> Expr:
    return x if factor == 1 else x * factor


@rule("mul", "multiply")
def mul(b: Builder, out: Meta, self: Operand, other: Operand) -> Value:
    return b.pointwise(out, lambda x, y: x * y, self, other)


@rule("div", "divide", "true_divide")
def div(
    b: Builder, out: Meta, self: Operand, other: Operand, rounding_mode: str | None = None
) -> Value:
    if rounding_mode == "floor":
        return floor_divide(b, out, self, other)
    if rounding_mode == "trunc" and is_float(out.dtype):
        return b.pointwise(out, lambda x, y: call("trunc", x / y), self, other)
    if rounding_mode == "trunc":
        return b.pointwise(out, lambda x, y: (x - call("fmod", x, y)) // y, self, other)
    return b.pointwise(out, lambda x, y: x / y, self, other)


@rule("floor_divide")
def floor_divide(b: Builder, out: Meta, self: Operand, other: Operand) -> Value:
    return b.pointwise(out, lambda x, y: x // y, self, other)


@rule("remainder")
def remainder(b: Builder, out: Meta, self: Operand, other: Operand) -> Value:
    return b.pointwise(out, lambda x, y: x % y, self, other)


@rule("fmod")
def fmod(b: Builder, out: Meta, self: Operand, other: Operand) -> Value:
    return b.pointwise(out, lambda x, y: call("fmod", x, y), self, other)


_POWERS = {  # of floats, by exponents that need no power
    1: lambda x: x,
    2: lambda x: x * x,
    3: lambda x: x * x * x,
    0.5: lambda x: call("sqrt", x),
    -0.5: lambda x: call("rsqrt", x),
    -1: lambda x: 1.0 / x,
    -2: lambda x: 1.0 / (x * x),
}


@rule("pow")
def pow(b: Builder, out: Meta, self: Operand, exponent: Operand) -> Value:
    if is_float(out.dtype):
        if not isinstance(exponent, Value) and exponent in _POWERS:
            return b.pointwise(out, _POWERS[exponent], self)
        self, exponent = _decimal(self), _decimal(exponent)
    return b.pointwise(out, lambda x, y: call("pow", x, y), self, exponent)


def _decimal(operand: Operand) -> Operand:
    """A constant as a float."""
    return float(operand) if isinstance(operand, int) else operand


@rule("addcmul")
def addcmul(
    b: Builder, out: Meta, self: Value, tensor1: Value, tensor2: Value, value: Term = 1
) -> Value:
    return b.pointwise(out, lambda x, y, z: x + _times(y, value) * z, self, tensor1, tensor2)


@rule("addcdiv")
def addcdiv(
    b: Builder, out: Meta, self: Value, tensor1: Value, tensor2: Value, value: Term = 1
) -> Value:
    return b.pointwise(out, lambda x, y, z: x + _times(y, value) / z, self, tensor1, tensor2)


@rule("lerp")
def lerp(b: Builder, out: Meta, self: Value, end: Value, weight: Operand) -> Value:
    """From the nearer end, so that each end is met exactly."""

    def between(x: Expr, y: Expr, w: Expr) -> Expr:
        near = call("abs", w) < 0.5
        return where(near, x + w * (y - x), y - (y - x) * (1.0 - w))

    return b.pointwise(out, between, self, end, weight)


@rule("copysign")
def copysign(b: Builder, out: Meta, self: Value, other: Operand) -> Value:
    """Zeros have signs, which their inverses show."""

    def signed(x: Expr, y: Expr) -> Expr:
        negative = either(y < 0.0, call("and", call("eq", y, 0.0), 1.0 / y < 0.0))
        return where(negative, -call("abs", x), call("abs", x))

    return b.pointwise(out, signed, self, _decimal(other))


@rule("clamp", "clip")
def clamp(
    b: Builder, out: Meta, self: Value, min: Operand | None = None, max: Operand | None = None
) -> Value:
    """Where the bounds cross, the upper one counts."""
    if min is None:
        return clamp_max(b, out, self, max)
    if max is None:
        return clamp_min(b, out, self, min)
    return b.pointwise(
        out, lambda x, y, z: call("minimum", call("maximum", x, y), z), self, min, max
    )


@rule("clamp_min")
def clamp_min(b: Builder, out: Meta, self: Value, min: Operand) -> Value:
    return maximum(b, out, self, min)


@rule("clamp_max")
def clamp_max(b: Builder, out: Meta, self: Value, max: Operand) -> Value:
    return minimum(b, out, self, max)


@rule("maximum", "max.other")
def maximum(b: Builder, out: Meta, self: Value, other: Operand) -> Value:
    return b.pointwise(out, lambda x, y: call("maximum", x, y), self, other)


@rule("minimum", "min.other")
def minimum(b: Builder, out: Meta, self: Value, other: Operand) -> Value:
    return b.pointwise(out, lambda x, y: call("minimum", x, y), self, other)


@rule("fmax")
def fmax(b: Builder, out: Meta, self: Value, other: Value) -> Value:
    """The number where one operand is NaN."""
    if not is_float(out.dtype):
        return maximum(b, out, self, other)
    return b.pointwise(out, lambda x, y: where(either(x >= y, call("isnan", y)), x, y), self, other)


@rule("fmin")
def fmin(b: Builder, out: Meta, self: Value, other: Value) -> Value:
    """The number where one operand is NaN."""
    if not is_float(out.dtype):
        return minimum(b, out, self, other)
    return b.pointwise(out, lambda x, y: where(either(x <= y, call("isnan", y)), x, y), self, other)


@rule("reciprocal")
def reciprocal(b: Builder, out: Meta, self: Value) -> Value:
    return b.pointwise(out, lambda x: 1.0 / x, self)
