"""Softmax: exponentials that sum to one along a dimension, and their logarithms."""

from __future__ import annotations

from frontends.aten.reduction import into
from frontends.aten.table import rule
from frontends.axes import axes, reduce, without
from frontends.builder import Builder, Meta, Value, computed
from frontends.expressions import call, where
from ir.spec import Expr


def _shifted(b: Builder, out: Meta, x: Value, dims: tuple[int, ...], safe: bool = False):
    """An element less the maximum of its row, as a function of positions; and the sum of the
    row's exponentials of these."""
    dtype = computed(out.dtype)
    small = Meta(dtype, without(x.shape, dims))
    top = reduce(b, "max", small, x, dims, lambda *at: into(dtype, x, *at), "max")

    def less(*at: Expr) -> Expr:
        row = top.at(*without(at, dims))
        if safe:
            row = where(call("isinf", row), 0.0, row)
        return into(dtype, x, *at) - row

    total = reduce(b, "sum", small, x, dims, lambda *at: call("exp", less(*at)), "sum")
    return less, total


@rule("_softmax", "softmax")
def softmax(b: Builder, out: Meta, self: Value, dim: int, half_to_float: bool = False) -> Value:
    dims = axes(dim, self.rank)
    less, total = _shifted(b, out, self, dims)

    def body(*at: Expr) -> Expr:
        return call("exp", less(*at)) / total.at(*without(at, dims))

    return b.define(out, body, "softmax")


@rule("_safe_softmax")
def safe_softmax(b: Builder, out: Meta, self: Value, dim: int) -> Value:
    """A row of negative infinities gives zeros."""
    dims = axes(dim, self.rank)
    less, total = _shifted(b, out, self, dims, safe=True)

    def body(*at: Expr) -> Expr:
        row = total.at(*without(at, dims))
        return where(call("eq", row, 0.0), 0.0, call("exp", less(*at)) / row)

    return b.define(out, body, "softmax")


@rule("_log_softmax", "log_softmax")
def log_softmax(b: Builder, out: Meta, self: Value, dim: int, half_to_float: bool = False) -> Value:
    dims = axes(dim, self.rank)
    less, total = _shifted(b, out, self, dims)

    def body(*at: Expr) -> Expr:
        return less(*at) - call("log", total.at(*without(at, dims)))

    return b.define(out, body, "log_softmax")


def _row_sum(b: Builder, out: Meta, x: Value, dims: tuple[int, ...], body) -> Value:
    return reduce(b, "sum", Meta(computed(x.dtype), without(x.shape, dims)), x, dims, body, "sum")


@rule("_softmax_backward_data")
def softmax_backward(
    b: Builder, out: Meta, grad_output: Value, output: Value, dim: int, input_dtype: object
) -> Value:
    dims = axes(dim, output.rank)
    total = _row_sum(b, out, output, dims, lambda *at: grad_output.wide(*at) * output.wide(*at))

    def body(*at: Expr) -> Expr:
        return output.wide(*at) * (grad_output.wide(*at) - total.at(*without(at, dims)))

    return b.define(out, body, "grad")


@rule("_log_softmax_backward_data")
def log_softmax_backward(
    b: Builder, out: Meta, grad_output: Value, output: Value, dim: int, input_dtype: object
) -> Value:
    dims = axes(dim, output.rank)
    total = _row_sum(b, out, output, dims, grad_output.wide)

    def body(*at: Expr) -> Expr:
        row = total.at(*without(at, dims))
        return grad_output.wide(*at) - call("exp", output.wide(*at)) * row

    return b.define(out, body, "grad")
