"""Pointwise functions of one element, choices, and casts."""

from __future__ import annotations

import math

import torch

from frontends.aten.table import Rule, rule
from frontends.builder import Builder, Meta, Value
from frontends.dtypes import TORCH
from frontends.expressions import Term, both, call, cast, either, where
from ir.dtypes import is_float
from ir.spec import Expr, Index

_NAMED = (  # operators that are functions of the language
    *("abs", "neg", "sign", "ceil", "floor", "trunc", "square", "exp", "exp2", "expm1", "log"),
    *("log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "asin", "acos", "atan"),
    *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "sigmoid", "relu"),
)


def _function(name: str) -> Rule:
    def of_one(b: Builder, out: Meta, self: Value) -> Value:
        return b.pointwise(out, lambda x: call(name, x), self)

    return of_one


for _name in _NAMED:
    rule(_name)(_function(_name))


@rule("round")
def round(b: Builder, out: Meta, self: Value, decimals: int = 0) -> Value:
    """To the nearest, halves to the even; decimals: digits after the point that are kept."""
    scale = 10.0 ** abs(decimals)
    if not decimals:
        return b.pointwise(out, lambda x: call("round", x), self)
    if decimals > 0:
        return b.pointwise(out, lambda x: call("round", x * scale) / scale, self)
    return b.pointwise(out, lambda x: call("round", x / scale) * scale, self)


@rule("atan2")
def atan2(b: Builder, out: Meta, self: Value, other: Value) -> Value:
    return b.pointwise(out, lambda y, x: call("atan2", y, x), self, other)


@rule("hypot")
def hypot(b: Builder, out: Meta, self: Value, other: Value) -> Value:
    return b.pointwise(out, length, self, other)


def length(x: Expr, y: Expr) -> Expr:
    """Of a vector of two elements. They are divided by the larger one, so that squares neither overflow nor vanish."""
    larger = call("maximum", call("abs", x), call("abs", y))
    smaller = call("minimum", call("abs", x), call("abs", y))
    ratio = smaller / where(call("eq", larger, 0.0), 1.0, larger)
    whole = larger * call("sqrt", 1.0 + ratio * ratio)
    return where(call("eq", larger, math.inf), math.inf, whole)


@rule("ldexp")
def ldexp(b: Builder, out: Meta, self: Value, other: Value) -> Value:
    return b.pointwise(out, lambda x, n: x * call("exp2", n), self, other)


@rule("signbit")
def signbit(b: Builder, out: Meta, self: Value) -> Value:
    """Zeros have signs, which their inverses show."""
    if not is_float(self.dtype):
        return b.pointwise(out, lambda x: x < 0, self)

    def negative(x: Expr) -> Expr:
        return either(x < 0.0, both(call("eq", x, 0.0), 1.0 / x < 0.0))

    return b.pointwise(out, negative, self)


@rule("fake_quantize_per_tensor_affine_cachemask")
def fake_quantize(
    b: Builder,
    out: tuple[Meta, Meta],
    self: Value,
    scale: float,
    zero_point: int,
    quant_min: int,
    quant_max: int,
) -> tuple[Value, Value]:
    """What is left of numbers that are rounded to so many steps, and which were inside."""

    def step(x: Expr) -> Expr:
        return call("round", x * (1.0 / scale)) + float(zero_point)

    def kept(x: Expr) -> Expr:
        inside = call("minimum", call("maximum", step(x), float(quant_min)), float(quant_max))
        return (inside - float(zero_point)) * scale

    def inside(x: Expr) -> Expr:
        return both(step(x) >= float(quant_min), step(x) <= float(quant_max))

    return b.pointwise(out[0], kept, self), b.pointwise(out[1], inside, self)


@rule("fake_quantize_per_channel_affine_cachemask")
def fake_quantize_channels(
    b: Builder,
    out: tuple[Meta, Meta],
    self: Value,
    scale: Value,
    zero_point: Value,
    axis: int,
    quant_min: int,
    quant_max: int,
) -> tuple[Value, Value]:
    """As above, with a scale and a zero for each position along a dimension. A zero that is a
    float is added before a number is rounded, as PyTorch does."""
    low, high = float(quant_min), float(quant_max)
    after = not is_float(zero_point.dtype)

    def step(*at: Index) -> tuple[Expr, Expr, Expr]:
        by, zero = scale.wide(at[axis]), cast("f32", zero_point.at(at[axis]))
        whole = self.wide(*at) * (1.0 / by)
        return (call("round", whole) + zero if after else call("round", whole + zero)), by, zero

    def kept(*at: Index) -> Expr:
        place, by, zero = step(*at)
        return (call("minimum", call("maximum", place, low), high) - zero) * by

    def inside(*at: Index) -> Expr:
        place, _, _ = step(*at)
        return both(place >= low, place <= high)

    return b.define(out[0], kept), b.define(out[1], inside)


@rule("angle")
def angle(b: Builder, out: Meta, self: Value) -> Value:
    """Of real numbers: pi for those below 0."""

    def phase(x: Expr) -> Expr:
        return where(call("isnan", x), x, where(x < 0.0, math.pi, 0.0))

    return b.pointwise(out, phase, self)


@rule("polar")
def polar(b: Builder, out: Meta, abs: Value, angle: Value) -> Value:
    """A complex result is real, with a last dimension of 2: real and imaginary part."""

    def part(*at: Index) -> Expr:
        length, turn = b.operand(abs, at[:-1]), b.operand(angle, at[:-1])
        return length * where(call("eq", at[-1], 0), call("cos", turn), call("sin", turn))

    return b.define(out, part)


@rule("xlogy", "special_xlogy")
def xlogy(b: Builder, out: Meta, self: Value | Term, other: Value | Term) -> Value:
    """0 log y is 0 unless y is NaN."""

    def body(x: Expr, y: Expr) -> Expr:
        whole = where(call("eq", x, 0.0), 0.0, x * call("log", y))
        return where(call("ne", y, y), math.nan, whole)

    return b.pointwise(out, body, self, other)


@rule("logaddexp")
def logaddexp(b: Builder, out: Meta, self: Value, other: Value) -> Value:
    """Of equal infinities, which have no difference, the infinity itself."""

    def body(x: Expr, y: Expr) -> Expr:
        apart = where(call("eq", x, y), 0.0, call("abs", x - y))
        return call("maximum", x, y) + call("log1p", call("exp", -apart))

    return b.pointwise(out, body, self, other)


_CENTRAL = (
    (0.886226899, -1.645349621, 0.914624893, -0.140543331),
    (1.0, -2.118377725, 1.442710462, -0.329097515, 0.012229801),
)
_TAIL = ((-1.970840454, -1.624906493, 3.429567803, 1.641345311), (1.0, 3.543889200, 1.637067800))


@rule("erfinv", "special_erfinv")
def erfinv(b: Builder, out: Meta, self: Value) -> Value:
    """Rational functions near 0 and in the tails, then two steps of Newton's (as ATen does)."""

    def start(y: Expr) -> Expr:
        square, size = y * y, call("abs", y)
        tail = call("sqrt", -call("log", (1.0 - size) / 2.0))
        far = _polynomial(tail, _TAIL[0]) / _polynomial(tail, _TAIL[1])
        near = y * _polynomial(square, _CENTRAL[0]) / _polynomial(square, _CENTRAL[1])
        return where(size <= 0.7, near, where(y < 0.0, -far, far))

    def step(x: Expr, y: Expr) -> Expr:
        slope = 2.0 / math.sqrt(math.pi) * call("exp", -(x * x))
        return x - (call("erf", x) - y) / slope

    def end(x: Expr, y: Expr) -> Expr:
        return where(call("eq", call("abs", y), 1.0), y * math.inf, step(x, y))

    kind = Meta("f64" if out.dtype == "f64" else "f32", out.shape)
    once = b.pointwise(kind, step, b.pointwise(kind, start, self), self)
    return b.pointwise(out, end, once, self)


def _polynomial(x: Expr, coefficients: tuple[float, ...]) -> Expr:
    made: Expr = x * coefficients[-1]
    for c in coefficients[-2:0:-1]:
        made = (made + c) * x
    return made + coefficients[0]


@rule("nan_to_num")
def nan_to_num(
    b: Builder,
    out: Meta,
    self: Value,
    nan: Term | None = None,
    posinf: Term | None = None,
    neginf: Term | None = None,
) -> Value:
    if not is_float(out.dtype):
        return self
    limits = torch.finfo(TORCH[out.dtype])
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf

    def body(x: Expr) -> Expr:
        finite = where(call("eq", x, math.inf), high, where(call("eq", x, -math.inf), low, x))
        return where(call("isnan", x), nan or 0.0, finite)

    return b.pointwise(out, body, self)


@rule("where.self", "where.Scalar", "where.ScalarSelf", "where.ScalarOther")
def where_(
    b: Builder, out: Meta, condition: Value, self: Value | Term, other: Value | Term
) -> Value:
    def body(*at: Index) -> Expr:
        chosen = (b.operand(o, at, out.dtype) for o in (self, other))
        return where(b.operand(condition, at, "b8"), *chosen)

    return b.define(out, body)


@rule("masked_fill")
def masked_fill(b: Builder, out: Meta, self: Value, mask: Value, value: Value | Term) -> Value:
    return where_(b, out, mask, value, self)


@rule("to", "_to_copy", "type_as")
def to(b: Builder, out: Meta, self: Value, *_: object, **__: object) -> Value:
    """A cast; where a value is held makes no difference."""
    return self if self.meta == out else b.define(out, self.at)


@rule("resolve_conj", "resolve_neg", "real")
def resolve_conj(b: Builder, out: Meta, self: Value) -> Value:
    """Of real numbers: themselves."""
    return self
