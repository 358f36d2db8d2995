"""Activations."""

from __future__ import annotations

import math

from frontends.aten.arithmetic import clamp
from frontends.aten.table import rule
from frontends.axes import axis
from frontends.builder import Builder, Meta, Value
from frontends.expressions import Term, call, where
from frontends.positions import moved
from ir.spec import Expr, Index

SELU = (1.6732632423543772, 1.0507009873554805)  # alpha, scale
TANH_GELU = (math.sqrt(2.0 / math.pi), 0.044715)  # of the sum, of the cube


@rule("silu")
def silu(b: Builder, out: Meta, self: Value) -> Value:
    return b.pointwise(out, lambda x: call("silu", x), self)


@rule("gelu")
def gelu(b: Builder, out: Meta, self: Value, approximate: str = "none") -> Value:
    scale, cube = TANH_GELU

    def by_tanh(x: Expr) -> Expr:
        return 0.5 * x * (1.0 + call("tanh", scale * (x + cube * (x * x * x))))

    exact = approximate == "none"
    return b.pointwise(out, (lambda x: call("gelu", x)) if exact else by_tanh, self)


@rule("glu")
def glu(b: Builder, out: Meta, self: Value, dim: int = -1) -> Value:
    """The first half along a dimension, times the sigmoid of the second."""
    dim = axis(dim, self.rank)
    half = out.shape[dim]

    def gated(*at: Index) -> Expr:
        gate = self.wide(*moved(at, dim, at[dim] + half))
        return self.wide(*at) * call("sigmoid", gate)

    return b.define(out, gated)


@rule("elu")
def elu(
    b: Builder, out: Meta, self: Value, alpha: float = 1, scale: float = 1, input_scale: float = 1
) -> Value:
    def body(x: Expr) -> Expr:
        low = call("expm1", x * float(input_scale)) * float(alpha * scale)
        return where(x <= 0.0, low, x * float(scale))

    return b.pointwise(out, body, self)


@rule("celu")
def celu(b: Builder, out: Meta, self: Value, alpha: float = 1.0) -> Value:
    return elu(b, out, self, alpha, 1.0, 1.0 / alpha)


@rule("selu")
def selu(b: Builder, out: Meta, self: Value) -> Value:
    return elu(b, out, self, *SELU)


@rule("leaky_relu")
def leaky_relu(b: Builder, out: Meta, self: Value, negative_slope: float = 0.01) -> Value:
    return b.pointwise(out, lambda x: where(x > 0.0, x, x * float(negative_slope)), self)


@rule("prelu")
def prelu(b: Builder, out: Meta, self: Value, weight: Value) -> Value:
    """weight: one, or one for each channel, which is dimension 1."""
    shape = (1,) * (self.rank - min(self.rank, 2)) if weight.rank else ()
    return prelu_kernel(b, out, self, b.reshape(weight, (*weight.shape, *shape)))


@rule("_prelu_kernel")
def prelu_kernel(b: Builder, out: Meta, self: Value, weight: Value) -> Value:
    return b.pointwise(out, lambda x, w: where(x > 0.0, x, x * w), self, weight)


@rule("threshold")
def threshold(b: Builder, out: Meta, self: Value, threshold: Term, value: Term) -> Value:
    return b.pointwise(out, lambda x: where(x <= threshold, value, x), self)


@rule("hardtanh")
def hardtanh(b: Builder, out: Meta, self: Value, min_val: Term = -1, max_val: Term = 1) -> Value:
    return clamp(b, out, self, min_val, max_val)


@rule("relu6")
def relu6(b: Builder, out: Meta, self: Value) -> Value:
    return clamp(b, out, self, 0, 6)


def _hard(x: Expr) -> Expr:
    return call("minimum", call("maximum", x + 3.0, 0.0), 6.0) / 6.0


@rule("hardsigmoid")
def hardsigmoid(b: Builder, out: Meta, self: Value) -> Value:
    return b.pointwise(out, _hard, self)


@rule("hardswish")
def hardswish(b: Builder, out: Meta, self: Value) -> Value:
    return b.pointwise(out, lambda x: x * _hard(x), self)


def softplus_of(x: Expr, beta: float = 1.0, threshold: float = 20.0) -> Expr:
    """log(1 + exp(beta x)) / beta, and x itself where beta x is above the threshold."""
    scaled = x if beta == 1 else x * float(beta)
    curved = call("log1p", call("exp", call("minimum", scaled, float(threshold))))
    return where(scaled > float(threshold), x, curved if beta == 1 else curved / float(beta))


@rule("softplus")
def softplus(b: Builder, out: Meta, self: Value, beta: float = 1, threshold: float = 20) -> Value:
    return b.pointwise(out, lambda x: softplus_of(x, beta, threshold), self)


@rule("mish")
def mish(b: Builder, out: Meta, self: Value) -> Value:
    """x tanh(log(1 + exp(x))) with one exponential, e = exp(x): the tangent is e (e + 2) / (e (e + 2) + 2), of
    positive terms alone. From 20 on it is 1."""

    def made(x: Expr) -> Expr:
        e = call("exp", call("minimum", x, 20.0))
        above = e * (e + 2.0)
        return x * (above / (above + 2.0))

    return b.pointwise(out, made, self)


def _small(x: Expr) -> Expr:
    return call("exp", -call("abs", x))


@rule("log_sigmoid")
def log_sigmoid(b: Builder, out: Meta, self: Value) -> Value:
    return b.pointwise(out, lambda x: call("minimum", x, 0.0) - call("log1p", _small(x)), self)


@rule("log_sigmoid_forward")
def log_sigmoid_forward(
    b: Builder, out: tuple[Meta, Meta], self: Value
) -> tuple[Value, Value | None]:
    """With exp(-|x|), which PyTorch keeps for the gradient on the CPU only."""
    kept = b.pointwise(out[1], _small, self) if out[1].shape == self.shape else None
    return log_sigmoid(b, out[0], self), kept
