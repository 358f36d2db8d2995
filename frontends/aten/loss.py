"""Losses: how far a prediction is from its target, for each element, or their mean or sum."""

from __future__ import annotations

from collections.abc import Callable

from frontends.aten.table import rule
from frontends.builder import Builder, Meta, Value, computed
from frontends.expressions import Term, call, cast, constant, product, where
from ir.spec import Expr

MEAN, SUM = 1, 2  # reductions of PyTorch; 0 for none


def reduced(
    b: Builder, out: Meta, shape: tuple[Expr, ...], reduction: int, element: Callable[..., Expr]
) -> Value:
    """Elements of a loss; their sum, or their mean."""
    if reduction not in (MEAN, SUM):
        return b.define(out, element, "loss")
    if reduction == SUM:
        return b.reduce("sum", out, shape, element, "loss")
    total = b.reduce("sum", Meta(computed(out.dtype), ()), shape, element, "total")
    count = product(shape)
    return b.define(out, lambda: total.at() / count, "loss")


def _wider(*shapes: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """What shapes broadcast to."""
    made: list[Expr] = []
    for n in range(1, max(map(len, shapes)) + 1):
        sizes = [s[-n] for s in shapes if len(s) >= n]
        made.insert(0, next((s for s in sizes if constant(s) != 1), sizes[0]))
    return tuple(made)


def _pairwise(name: str, *parameters: str) -> Callable:
    """Registers a loss of elements x and y: `element(x, y, **parameters)`."""

    def registered(element: Callable[..., Expr]) -> Callable[..., Expr]:
        @rule(name)
        def loss(
            b: Builder, out: Meta, self: Value, target: Value, reduction: int = MEAN, **given: Term
        ) -> Value:
            shape, dtype = _wider(self.shape, target.shape), computed(out.dtype)

            def at_place(*at: Expr) -> Expr:
                x, y = (_element(b, v, at, dtype) for v in (self, target))
                return element(x, y, **{p: given[p] for p in parameters})

            return reduced(b, out, shape, reduction, at_place)

        return element

    return registered


def _element(b: Builder, x: Value, at: tuple[Expr, ...], dtype: str) -> Expr:
    read = x.at(*b.broadcast(x, at))
    return read if x.dtype == dtype else cast(dtype, read)


@_pairwise("mse_loss")
def mse_loss(x: Expr, y: Expr) -> Expr:
    return call("square", x - y)


@_pairwise("l1_loss")
def l1_loss(x: Expr, y: Expr) -> Expr:
    return call("abs", x - y)


@_pairwise("smooth_l1_loss", "beta")
def smooth_l1_loss(x: Expr, y: Expr, beta: float = 1.0) -> Expr:
    apart = call("abs", x - y)
    if beta == 0:
        return apart
    return where(apart < beta, 0.5 * apart * apart / beta, apart - 0.5 * beta)


@_pairwise("huber_loss", "delta")
def huber_loss(x: Expr, y: Expr, delta: float = 1.0) -> Expr:
    apart = call("abs", x - y)
    return where(apart <= delta, 0.5 * apart * apart, delta * (apart - 0.5 * delta))


@_pairwise("soft_margin_loss")
def soft_margin_loss(x: Expr, y: Expr) -> Expr:
    return call("log1p", call("exp", -(x * y)))


@_pairwise("kl_div", "log_target")
def kl_div(x: Expr, y: Expr, log_target: bool = False) -> Expr:
    if log_target:
        return call("exp", y) * (y - x)
    return where(call("eq", y, 0.0), 0.0, y * call("log", y)) - y * x


@rule("hinge_embedding_loss")
def hinge_embedding_loss(
    b: Builder, out: Meta, self: Value, target: Value, margin: float = 1.0, reduction: int = MEAN
) -> Value:
    dtype = computed(out.dtype)

    def element(*at: Expr) -> Expr:
        x, y = (_element(b, v, at, dtype) for v in (self, target))
        far = where(call("eq", y, 1), 0.0, call("maximum", margin - x, 0.0))
        return far + where(call("eq", y, -1), 0.0, x)

    return reduced(b, out, _wider(self.shape, target.shape), reduction, element)


@rule("margin_ranking_loss")
def margin_ranking_loss(
    b: Builder,
    out: Meta,
    input1: Value,
    input2: Value,
    target: Value,
    margin: float = 0.0,
    reduction: int = MEAN,
) -> Value:
    shape, dtype = _wider(input1.shape, input2.shape, target.shape), computed(out.dtype)

    def element(*at: Expr) -> Expr:
        x, y, sign = (_element(b, v, at, dtype) for v in (input1, input2, target))
        return call("maximum", margin - sign * (x - y), 0.0)

    return reduced(b, out, shape, reduction, element)


@rule("binary_cross_entropy")
def binary_cross_entropy(
    b: Builder,
    out: Meta,
    self: Value,
    target: Value,
    weight: Value | None = None,
    reduction: int = MEAN,
) -> Value:
    """Logarithms are at least -100."""
    dtype = computed(out.dtype)

    def element(*at: Expr) -> Expr:
        x, y = (_element(b, v, at, dtype) for v in (self, target))
        yes = call("maximum", call("log", x), -100.0)
        no = call("maximum", call("log1p", -x), -100.0)
        made = (y - 1.0) * no - y * yes
        return made * _element(b, weight, at, dtype) if weight else made

    return reduced(b, out, self.shape, reduction, element)


@rule("binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(
    b: Builder,
    out: Meta,
    self: Value,
    target: Value,
    weight: Value | None = None,
    pos_weight: Value | None = None,
    reduction: int = MEAN,
) -> Value:
    dtype = computed(out.dtype)

    def element(*at: Expr) -> Expr:
        x, y = (_element(b, v, at, dtype) for v in (self, target))
        small = call("log1p", call("exp", -call("abs", x))) + call("maximum", -x, 0.0)
        if pos_weight:
            factor = 1.0 + (_element(b, pos_weight, at, dtype) - 1.0) * y
            made = (1.0 - y) * x + factor * small
        else:
            made = (1.0 - y) * x + small
        return made * _element(b, weight, at, dtype) if weight else made

    return reduced(b, out, _wider(self.shape, target.shape), reduction, element)


@rule("mse_loss_backward")
def mse_loss_backward(
    b: Builder, out: Meta, grad_output: Value, self: Value, target: Value, reduction: int
) -> Value:
    dtype, count = computed(out.dtype), product(self.shape)

    def element(*at: Expr) -> Expr:
        grad, x, y = (_element(b, v, at, dtype) for v in (grad_output, self, target))
        made = 2.0 * (x - y) * grad
        return made / count if reduction == MEAN else made

    return b.define(out, element, "grad")
