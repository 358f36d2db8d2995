"""Antialiased resampling: each element a weighted mean of all that it covers in the source."""

from __future__ import annotations

from collections.abc import Callable

from frontends.aten.resample import Dim, cubic, dims_of, factors
from frontends.aten.table import rule
from frontends.builder import Builder, Meta, Value, computed
from frontends.expressions import call, cast, constant, plus, where
from ir.errors import KernelError
from ir.spec import Expr, Number

FilterKernel = Callable[[Expr], Expr]  # of a distance that is not negative


def _triangle(x: Expr) -> Expr:
    return call("maximum", 1.0 - x, 0.0)


def _weights(
    b: Builder, dim: Dim, dtype: str, aligned: bool, kernel: FilterKernel, reach: float
) -> tuple[Value, Value, int]:
    """The first position of each place in the source, the weights from there, and how many at
    most. reach: of the kernel, on each side."""
    step = constant(dim.made) and dim.step(aligned)
    if not isinstance(step, Number):
        raise KernelError(
            "an antialiased image has a size that is not known",
            hint="export the module with images of one size",
        )
    stretch = max(float(step.value), 1.0)
    support = reach * stretch
    count = int(-(-support // 1)) * 2 + 1
    low = b.define(
        Meta("i32", (dim.made,)),
        lambda at: cast("i32", call("maximum", _centre(at, dtype, step) - support + 0.5, 0.0)),
        "low",
    )

    def weight(at: Expr, k: Expr) -> Expr:
        centre = _centre(at, dtype, step)
        end = cast("i32", call("minimum", centre + support + 0.5, cast(dtype, dim.size)))
        place = low.at(at) + k
        away = call("abs", (cast(dtype, place) - centre + 0.5) * (1.0 / stretch))
        return where(place < end, kernel(away), 0.0)

    raw = b.define(Meta(dtype, (dim.made, Number(count))), weight, "weight")
    total = b.reduce("sum", Meta(dtype, (dim.made,)), (Number(count),), raw.at, "total")
    made = b.define(raw.meta, lambda at, k: raw.at(at, k) / total.at(at), "weight")
    return low, made, count


def _centre(at: Expr, dtype: str, step: Number) -> Expr:
    return (cast(dtype, at) + 0.5) * step


def _resampled(
    b: Builder, meta: Meta, x: Value, along: int, weights: tuple[Value, Value, int]
) -> Value:
    low, weight, count = weights

    def body(*indices: Expr) -> Expr:
        *at, k = indices
        place = plus(low.at(at[along]), k)
        source = (*at[:along], place, *at[along + 1 :])
        return x.wide(*source, pad=0.0) * weight.at(at[along], k)

    return b.reduce("sum", meta, (Number(count),), body, "resampled")


def _antialiased(name: str, kernel: FilterKernel, reach: float) -> None:
    @rule(name)
    def resample(
        b: Builder,
        out: Meta,
        align_corners: bool,
        self: Value | None = None,
        input: Value | None = None,
        **given: object,
    ) -> Value:
        """Along rows first, then along columns."""
        x, dtype = self or input, computed(out.dtype)
        dims = dims_of(x, out, 2, factors(2, given))
        columns, rows = (_weights(b, dim, dtype, align_corners, kernel, reach) for dim in dims)
        between = Meta(dtype, (*x.shape[:-1], out.shape[-1]))
        made = _resampled(b, between, x, x.rank - 1, rows)
        return _resampled(b, out, made, x.rank - 2, columns)


_antialiased("_upsample_bicubic2d_aa", lambda x: cubic(x, -0.5), 2.0)
_antialiased("_upsample_bilinear2d_aa", _triangle, 1.0)
