"""Norms of rows and of groups: layer norm, RMS norm, group norm, weight norm."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from frontends.aten.reduction import moments
from frontends.aten.table import rule
from frontends.axes import reduce, without
from frontends.builder import Builder, Meta, Value, computed
from frontends.dtypes import TORCH
from frontends.expressions import call, product, quotient
from ir.spec import Expr, Number

Three = tuple[Value | None, Value | None, Value | None]


def scaled(read: Expr, weight: Value | None, bias: Value | None, *at: Expr) -> Expr:
    """`read * weight[at] + bias[at]`, of what is given."""
    made = read * weight.wide(*at) if weight else read
    return made + bias.wide(*at) if bias else made


@rule("native_layer_norm")
def native_layer_norm(
    b: Builder,
    out: Sequence[Meta],
    input: Value,
    normalized_shape: Sequence[Expr | int],
    weight: Value | None,
    bias: Value | None,
    eps: float,
) -> tuple[Value, Value, Value]:
    """The normalised rows; of each its mean and the reciprocal of its deviation."""
    rows = input.rank - len(normalized_shape)
    dims = tuple(range(rows, input.rank))
    middle, var = moments(b, input, dims, computed(input.dtype))
    rstd = b.pointwise(var.meta, lambda v: call("rsqrt", v + eps), var, name="rstd")

    def body(*at: Expr) -> Expr:
        row = at[:rows]
        normal = (input.wide(*at) - middle.at(*row)) * rstd.at(*row)
        return scaled(normal, weight, bias, *at[rows:])

    result = b.define(out[0], body, "layer_norm")
    return result, _kept(b, out[1], middle), _kept(b, out[2], rstd)


def _kept(b: Builder, meta: Meta, value: Value) -> Value:
    """What has an element for each row, with the reduced dimensions kept at one element."""
    return b.define(meta, lambda *at: value.at(*at[: value.rank]), value.name)


@rule("native_layer_norm_backward")
def native_layer_norm_backward(
    b: Builder,
    out: Sequence[Meta | None],
    grad_out: Value,
    input: Value,
    normalized_shape: Sequence[Expr | int],
    mean: Value,
    rstd: Value,
    weight: Value | None,
    bias: Value | None,
    output_mask: Sequence[bool],
) -> Three:
    rank, rows = input.rank, input.rank - len(normalized_shape)
    inner, outer = tuple(range(rows, rank)), tuple(range(rows))

    def row(value: Value, at: Sequence[Expr]) -> Expr:
        return value.wide(*b.broadcast(value, at))

    def normal(*at: Expr) -> Expr:
        return (input.wide(*at) - row(mean, at)) * row(rstd, at)

    def grad(*at: Expr) -> Expr:
        return scaled(grad_out.wide(*at), weight, None, *at[rows:])

    first = second = third = None
    if output_mask[0]:
        first = _row_gradient(b, out[0], input, inner, grad, normal, lambda at: row(rstd, at))
    if output_mask[1]:
        second = reduce(
            b, "sum", out[1], input, outer, lambda *at: grad_out.wide(*at) * normal(*at), "grad"
        )
    if output_mask[2]:
        third = reduce(b, "sum", out[2], input, outer, grad_out.wide, "grad")
    return first, second, third


def _row_gradient(
    b: Builder,
    out: Meta,
    x: Value,
    inner: tuple[int, ...],
    grad: Callable[..., Expr],
    normal: Callable[..., Expr],
    rstd: Callable[[Sequence[Expr]], Expr],
) -> Value:
    """Of rows that were normalised along `inner`: `rstd * (g - mean(g) - n * mean(g * n))`."""
    small = Meta(computed(x.dtype), without(x.shape, inner))
    plain = reduce(b, "sum", small, x, inner, grad, "sum")
    along = reduce(b, "sum", small, x, inner, lambda *at: grad(*at) * normal(*at), "sum")
    count = product(tuple(x.shape[d] for d in inner))

    def body(*at: Expr) -> Expr:
        row = without(at, inner)
        drift = (plain.at(*row) + normal(*at) * along.at(*row)) / count
        return rstd(at) * (grad(*at) - drift)

    return b.define(out, body, "grad")


def _rms(
    b: Builder, out: Meta, x: Value, rows: int, weight: Value | None, eps: float | None
) -> tuple[Value, Value]:
    dtype = computed(x.dtype)
    if eps is None:
        eps = torch.finfo(TORCH[dtype]).eps
    dims = tuple(range(rows, x.rank))
    small = Meta(dtype, x.shape[:rows])
    squares = reduce(b, "sum", small, x, dims, lambda *at: call("square", x.wide(*at)), "squares")
    count = product(x.shape[rows:])
    rstd = b.pointwise(small, lambda s: call("rsqrt", s / count + eps), squares, name="rstd")

    def body(*at: Expr) -> Expr:
        return scaled(x.wide(*at) * rstd.at(*at[:rows]), weight, None, *at[rows:])

    return b.define(out, body, "rms_norm"), rstd


@rule("rms_norm")
def rms_norm(
    b: Builder,
    out: Meta,
    input: Value,
    normalized_shape: Sequence[Expr | int],
    weight: Value | None = None,
    eps: float | None = None,
) -> Value:
    return _rms(b, out, input, input.rank - len(normalized_shape), weight, eps)[0]


@rule("_fused_rms_norm")
def fused_rms_norm(
    b: Builder,
    out: Sequence[Meta],
    input: Value,
    normalized_shape: Sequence[Expr | int],
    weight: Value | None,
    eps: float | None,
) -> tuple[Value, Value]:
    made, rstd = _rms(b, out[0], input, input.rank - len(normalized_shape), weight, eps)
    return made, _kept(b, out[1], rstd)


@rule("native_group_norm")
def native_group_norm(
    b: Builder,
    out: Sequence[Meta],
    input: Value,
    weight: Value | None,
    bias: Value | None,
    N: Expr | int,
    C: Expr | int,
    HxW: Expr | int,
    group: int,
    eps: float,
) -> tuple[Value, Value, Value]:
    """Channels of a group are normalised together, over all their positions."""
    parts = _grouped(b, input, group)
    middle, var = moments(b, parts, tuple(range(2, parts.rank)), computed(input.dtype))
    rstd = b.pointwise(var.meta, lambda v: call("rsqrt", v + eps), var, name="rstd")
    size = parts.shape[2]

    def body(n: Expr, c: Expr, *at: Expr) -> Expr:
        g = c // size
        normal = (input.wide(n, c, *at) - middle.at(n, g)) * rstd.at(n, g)
        return scaled(normal, weight, bias, c)

    result = b.define(out[0], body, "group_norm")
    return result, _kept(b, out[1], middle), _kept(b, out[2], rstd)


def _grouped(b: Builder, x: Value, group: int) -> Value:
    """[N, G, C / G, ...]"""
    n, channels, *rest = x.shape
    return b.reshape(x, (n, group, quotient(channels, Number(group)), *rest))


@rule("native_group_norm_backward")
def native_group_norm_backward(
    b: Builder,
    out: Sequence[Meta | None],
    grad_out: Value,
    input: Value,
    mean: Value,
    rstd: Value,
    weight: Value | None,
    N: Expr | int,
    C: Expr | int,
    HxW: Expr | int,
    group: int,
    output_mask: Sequence[bool],
) -> Three:
    x, g = _grouped(b, input, group), _grouped(b, grad_out, group)
    per = x.shape[2]

    def normal(*at: Expr) -> Expr:
        return (x.wide(*at) - mean.wide(*at[:2])) * rstd.wide(*at[:2])

    def grad(*at: Expr) -> Expr:
        return scaled(g.wide(*at), weight, None, at[1] * per + at[2])

    first = second = third = None
    if output_mask[0]:
        inner = tuple(range(2, x.rank))
        meta = Meta(out[0].dtype, x.shape)
        parts = _row_gradient(b, meta, x, inner, grad, normal, lambda at: rstd.wide(*at[:2]))
        first = b.reshape(parts, out[0].shape)
    outer = (0, *range(2, input.rank))

    def along(n: Expr, c: Expr, *at: Expr) -> Expr:
        q = c // per
        centred = (input.wide(n, c, *at) - mean.wide(n, q)) * rstd.wide(n, q)
        return grad_out.wide(n, c, *at) * centred

    if output_mask[1]:
        second = reduce(b, "sum", out[1], input, outer, along, "grad")
    if output_mask[2]:
        third = reduce(b, "sum", out[2], input, outer, grad_out.wide, "grad")
    return first, second, third


@rule("_weight_norm_interface")
def weight_norm(
    b: Builder, out: Sequence[Meta], v: Value, g: Value, dim: int = 0
) -> tuple[Value, Value]:
    """`v * g / norms`, the norms over all dimensions but one."""
    dims = tuple(d for d in range(v.rank) if d != dim)
    small = Meta(computed(v.dtype), (v.shape[dim],))
    squares = reduce(b, "sum", small, v, dims, lambda *at: call("square", v.wide(*at)), "squares")
    norms = b.define(out[1], lambda *at: call("sqrt", squares.at(at[dim])), "norms")

    def body(*at: Expr) -> Expr:
        place = b.broadcast(g, at)
        return v.wide(*at) * (g.wide(*place) / norms.wide(*b.broadcast(norms, at)))

    return b.define(out[0], body, "weight_norm"), norms


@rule("_weight_norm_interface_backward")
def weight_norm_backward(
    b: Builder,
    out: Sequence[Meta],
    grad_w: Value,
    saved_v: Value,
    saved_g: Value,
    saved_norms: Value,
    dim: int,
) -> tuple[Value, Value]:
    dims = tuple(d for d in range(saved_v.rank) if d != dim)
    small = Meta(computed(saved_v.dtype), (saved_v.shape[dim],))
    along = reduce(
        b, "sum", small, saved_v, dims, lambda *at: grad_w.wide(*at) * saved_v.wide(*at), "sum"
    )

    def grad_v(*at: Expr) -> Expr:
        g, norm = (t.wide(*b.broadcast(t, at)) for t in (saved_g, saved_norms))
        along_v = saved_v.wide(*at) * along.at(at[dim]) / (norm * norm)
        return g / norm * (grad_w.wide(*at) - along_v)

    def grad_g(*at: Expr) -> Expr:
        return along.at(at[dim]) / saved_norms.wide(*b.broadcast(saved_norms, at))

    return b.define(out[0], grad_v, "grad"), b.define(out[1], grad_g, "grad")
