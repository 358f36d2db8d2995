"""Gradients of activations."""

from __future__ import annotations

import math

from frontends.aten.activation import TANH_GELU, softplus_of
from frontends.aten.table import rule
from frontends.axes import axis
from frontends.builder import Builder, Meta, Value
from frontends.expressions import Term, both, call, either, where
from frontends.positions import moved
from ir.spec import Expr, Index


@rule("gelu_backward")
def gelu_backward(
    b: Builder, out: Meta, grad_output: Value, self: Value, approximate: str = "none"
) -> Value:
    scale, cube = TANH_GELU

    def exact(g: Expr, x: Expr) -> Expr:
        area = 0.5 * call("erfc", x * -math.sqrt(0.5))
        return g * (area + x * call("exp", -0.5 * (x * x)) * (1.0 / math.sqrt(2.0 * math.pi)))

    def by_tanh(g: Expr, x: Expr) -> Expr:
        t = call("tanh", scale * (x + cube * (x * x * x)))
        slope = (1.0 - t * t) * (scale * (1.0 + 3.0 * cube * (x * x)))
        return g * (0.5 * (1.0 + t) + 0.5 * x * slope)

    return b.pointwise(out, exact if approximate == "none" else by_tanh, grad_output, self)


@rule("sigmoid_backward")
def sigmoid_backward(b: Builder, out: Meta, grad_output: Value, output: Value) -> Value:
    return b.pointwise(out, lambda g, y: g * (1.0 - y) * y, grad_output, output)


@rule("tanh_backward")
def tanh_backward(b: Builder, out: Meta, grad_output: Value, output: Value) -> Value:
    return b.pointwise(out, lambda g, y: g * (1.0 - y * y), grad_output, output)


@rule("silu_backward")
def silu_backward(b: Builder, out: Meta, grad_output: Value, self: Value) -> Value:
    def body(g: Expr, x: Expr) -> Expr:
        s = call("sigmoid", x)
        return g * s * (1.0 + x * (1.0 - s))

    return b.pointwise(out, body, grad_output, self)


@rule("threshold_backward")
def threshold_backward(
    b: Builder, out: Meta, grad_output: Value, self: Value, threshold: Term
) -> Value:
    return b.pointwise(out, lambda g, x: where(x <= threshold, 0, g), grad_output, self)


@rule("elu_backward")
def elu_backward(
    b: Builder,
    out: Meta,
    grad_output: Value,
    alpha: float,
    scale: float,
    input_scale: float,
    is_result: bool,
    self_or_result: Value,
) -> Value:
    low = float(alpha * scale)

    def body(g: Expr, x: Expr) -> Expr:
        slope = x + low if is_result else low * call("exp", x * float(input_scale))
        return where(x <= 0.0, g * float(input_scale) * slope, g * float(scale))

    return b.pointwise(out, body, grad_output, self_or_result)


@rule("leaky_relu_backward")
def leaky_relu_backward(
    b: Builder,
    out: Meta,
    grad_output: Value,
    self: Value,
    negative_slope: float,
    self_is_result: bool,
) -> Value:
    return b.pointwise(
        out, lambda g, x: where(x > 0.0, g, g * float(negative_slope)), grad_output, self
    )


@rule("_prelu_kernel_backward")
def prelu_kernel_backward(
    b: Builder, out: tuple[Meta, Meta], grad_output: Value, self: Value, weight: Value
) -> tuple[Value, Value]:
    operands = (self, grad_output)
    return (
        b.pointwise(out[0], lambda x, g, w: where(x > 0.0, g, w * g), *operands, weight),
        b.pointwise(out[1], lambda x, g: where(x > 0.0, 0.0, x * g), *operands),
    )


@rule("hardtanh_backward")
def hardtanh_backward(
    b: Builder, out: Meta, grad_output: Value, self: Value, min_val: Term, max_val: Term
) -> Value:
    def body(g: Expr, x: Expr) -> Expr:
        return where(either(x <= min_val, x >= max_val), 0, g)

    return b.pointwise(out, body, grad_output, self)


@rule("hardsigmoid_backward")
def hardsigmoid_backward(b: Builder, out: Meta, grad_output: Value, self: Value) -> Value:
    def body(g: Expr, x: Expr) -> Expr:
        return where(both(x > -3.0, x < 3.0), g / 6.0, 0.0)

    return b.pointwise(out, body, grad_output, self)


@rule("hardswish_backward")
def hardswish_backward(b: Builder, out: Meta, grad_output: Value, self: Value) -> Value:
    def body(g: Expr, x: Expr) -> Expr:
        return where(x <= -3.0, 0.0, where(x < 3.0, g * (x / 3.0 + 0.5), g))

    return b.pointwise(out, body, grad_output, self)


@rule("softplus_backward")
def softplus_backward(
    b: Builder, out: Meta, grad_output: Value, self: Value, beta: float, threshold: float
) -> Value:
    def body(g: Expr, x: Expr) -> Expr:
        scaled = x * float(beta)
        return where(scaled > float(threshold), g, g * call("sigmoid", scaled))

    return b.pointwise(out, body, grad_output, self)


@rule("mish_backward")
def mish_backward(b: Builder, out: Meta, grad_output: Value, self: Value) -> Value:
    def body(g: Expr, x: Expr) -> Expr:
        t = call("tanh", softplus_of(x))
        return g * (t + x * call("sigmoid", x) * (1.0 - t * t))

    return b.pointwise(out, body, grad_output, self)


@rule("log_sigmoid_backward")
def log_sigmoid_backward(
    b: Builder, out: Meta, grad_output: Value, self: Value, buffer: Value | None
) -> Value:
    return b.pointwise(out, lambda g, x: g * call("sigmoid", -x), grad_output, self)


@rule("glu_backward")
def glu_backward(b: Builder, out: Meta, grad_output: Value, self: Value, dim: int) -> Value:
    dim = axis(dim, self.rank)
    half = grad_output.shape[dim]

    def body(*at: Index) -> Expr:
        place = at[dim] % half
        first = self.wide(*moved(at, dim, place))
        s = call("sigmoid", self.wide(*moved(at, dim, place + half)))
        slope = where(at[dim] < half, s, first * s * (1.0 - s))
        return grad_output.wide(*moved(at, dim, place)) * slope

    return b.define(out, body)
