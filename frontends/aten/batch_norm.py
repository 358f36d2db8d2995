"""Batch norm: channels normalised over the batch and all positions."""

from __future__ import annotations

from collections.abc import Sequence

from frontends.aten.norm import scaled
from frontends.aten.reduction import moments
from frontends.aten.table import rule
from frontends.axes import extent, reduce
from frontends.builder import Builder, Meta, Value, computed
from frontends.expressions import call, cast
from ir.spec import Expr

Kept = tuple[Value, Value]  # of each channel: the mean, the reciprocal of the deviation


def _dims(x: Value) -> tuple[int, ...]:
    return (0, *range(2, x.rank))


def _normalised(
    b: Builder, out: Meta, x: Value, kept: Kept, weight: Value | None, bias: Value | None
) -> Value:
    middle, rstd = kept

    def body(n: Expr, c: Expr, *at: Expr) -> Expr:
        normal = (x.wide(n, c, *at) - middle.wide(c)) * rstd.wide(c)
        return scaled(normal, weight, bias, c)

    return b.define(out, body, "batch_norm")


def _of_batch(b: Builder, x: Value, eps: float) -> tuple[Kept, Value]:
    """What training normalises with, from the biased variance; and that variance."""
    middle, var = moments(b, x, _dims(x), computed(x.dtype))
    rstd = b.pointwise(var.meta, lambda v: call("rsqrt", v + eps), var, name="rstd")
    return (middle, rstd), var


def _of_running(b: Builder, mean: Value, var: Value, eps: float) -> Kept:
    meta = Meta(computed(var.dtype), var.shape)
    return mean, b.pointwise(meta, lambda v: call("rsqrt", v + eps), var, name="rstd")


def _saved(b: Builder, out: Sequence[Meta], kept: Kept) -> Kept:
    """What a call in training returns of its batch, in the dtype that PyTorch keeps it in."""
    first, second = (
        b.define(meta, value.at, value.name) if meta.dtype != value.dtype else value
        for meta, value in zip(out, kept, strict=True)
    )
    return first, second


def _moved(
    b: Builder, out: Sequence[Meta], x: Value, mean: Value, var: Value, found: Kept, momentum: float
) -> tuple[Value, Value]:
    """The running statistics after a batch: the unbiased variance goes into them."""
    count = extent(x.shape, _dims(x))
    dtype = computed(found[1].dtype)

    def middle(old: Expr, new: Expr) -> Expr:
        return new * momentum + old * (1 - momentum)

    def spread(old: Expr, new: Expr) -> Expr:
        unbiased = new * (cast(dtype, count) / (count - 1))
        return unbiased * momentum + old * (1 - momentum)

    return (
        b.pointwise(out[0], middle, mean, found[0], name="running_mean"),
        b.pointwise(out[1], spread, var, found[1], name="running_var"),
    )


@rule("_native_batch_norm_legit_no_training")
def no_training(
    b: Builder,
    out: Sequence[Meta],
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value,
    running_var: Value,
    momentum: float,
    eps: float,
) -> tuple[Value, None, None]:
    """One factor and one summand for each channel, of parameters alone, so that they are constants of
    a compiled module. The two statistics that it returns have no elements."""
    mean, rstd = _of_running(b, running_mean, running_var, eps)
    meta = Meta(computed(running_var.dtype), running_var.shape)
    scale = b.define(meta, lambda c: scaled(rstd.wide(c), weight, None, c), "scale")

    def moved(c: Expr) -> Expr:
        down = mean.wide(c) * scale.wide(c)
        return bias.wide(c) - down if bias else -down

    shift = b.define(meta, moved, "shift")

    def body(n: Expr, c: Expr, *at: Expr) -> Expr:
        return input.wide(n, c, *at) * scale.wide(c) + shift.wide(c)

    return b.define(out[0], body, "batch_norm"), None, None


@rule("_native_batch_norm_legit.no_stats")
def no_stats(
    b: Builder,
    out: Sequence[Meta],
    input: Value,
    weight: Value | None,
    bias: Value | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Value, Value, Value]:
    kept, _ = _of_batch(b, input, eps)
    return _normalised(b, out[0], input, kept, weight, bias), *_saved(b, out[1:3], kept)


@rule("_native_batch_norm_legit_functional")
def functional(
    b: Builder,
    out: Sequence[Meta],
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value,
    running_var: Value,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Value | None, ...]:
    """The result, the batch's mean and reciprocal deviation, and both new running statistics."""
    if not training:
        made = no_training(b, out, input, weight, bias, running_mean, running_var, momentum, eps)
        return *made, *_saved(b, out[3:], (b.copy(running_mean), b.copy(running_var)))
    kept, var = _of_batch(b, input, eps)
    moved = _moved(b, out[3:], input, running_mean, running_var, (kept[0], var), momentum)
    result = _normalised(b, out[0], input, kept, weight, bias)
    return result, *_saved(b, out[1:3], kept), *moved


@rule("native_batch_norm", "_native_batch_norm_legit")
def native_batch_norm(
    b: Builder,
    out: Sequence[Meta],
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Value | None, ...]:
    """Without new running statistics: what writes them in place is made functional before."""
    if training or running_mean is None or running_var is None:
        return no_stats(b, out, input, weight, bias, True, momentum, eps)
    return no_training(b, out, input, weight, bias, running_mean, running_var, momentum, eps)


@rule("native_batch_norm_backward")
def native_batch_norm_backward(
    b: Builder,
    out: Sequence[Meta | None],
    grad_out: Value,
    input: Value,
    weight: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    save_mean: Value | None,
    save_invstd: Value | None,
    train: bool,
    eps: float,
    output_mask: Sequence[bool],
) -> tuple[Value | None, Value | None, Value | None]:
    kept = (save_mean, save_invstd) if train else _of_running(b, running_mean, running_var, eps)
    dims, count = _dims(input), extent(input.shape, _dims(input))
    small = Meta(computed(input.dtype), (input.shape[1],))

    def normal(n: Expr, c: Expr, *at: Expr) -> Expr:
        return (input.wide(n, c, *at) - kept[0].wide(c)) * kept[1].wide(c)

    def along(*at: Expr) -> Expr:
        return grad_out.wide(*at) * normal(*at)

    plain = reduce(b, "sum", small, input, dims, grad_out.wide, "sum")
    projected = reduce(b, "sum", small, input, dims, along, "sum")

    def body(n: Expr, c: Expr, *at: Expr) -> Expr:
        grad = grad_out.wide(n, c, *at)
        if train:
            grad = grad - (plain.at(c) + normal(n, c, *at) * projected.at(c)) / count
        return scaled(grad * kept[1].wide(c), weight, None, c)

    first = b.define(out[0], body, "grad") if output_mask[0] else None
    second = b.define(out[1], projected.at, "grad") if output_mask[1] else None
    third = b.define(out[2], plain.at, "grad") if output_mask[2] else None
    return first, second, third
