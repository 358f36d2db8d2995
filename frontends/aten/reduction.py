"""Reductions: elements along dimensions reduced to one."""

from __future__ import annotations

import math
from collections.abc import Callable

from frontends.aten.table import rule
from frontends.axes import Dims, axes, extent, reduce, without
from frontends.builder import NARROW, Builder, Meta, Value, computed
from frontends.expressions import Term, call, cast, where
from ir.spec import Expr

Element = Callable[[Expr], Expr]


def into(dtype: str, x: Value, *at: Expr) -> Expr:
    """An element in a dtype."""
    read = x.at(*at)
    return read if x.dtype == dtype else cast(dtype, read)


def reduced(
    b: Builder, kind: str, out: Meta, x: Value, dims: Dims, element: Element | None = None
) -> Value:
    """A reduction of elements in the dtype of the result, each changed by `element` first."""
    dtype = computed(out.dtype)

    def body(*at: Expr) -> Expr:
        read = into(dtype, x, *at)
        return element(read) if element else read

    return reduce(b, kind, out, x, axes(dims, x.rank), body, kind)


@rule("sum")
def sum_(b: Builder, out: Meta, self: Value, dim: Dims = None, keepdim: bool = False) -> Value:
    return reduced(b, "sum", out, self, dim)


@rule("nansum")
def nansum(b: Builder, out: Meta, self: Value, dim: Dims = None, keepdim: bool = False) -> Value:
    if self.dtype not in ("f64", "f32", *NARROW):
        return reduced(b, "sum", out, self, dim)
    return reduced(b, "sum", out, self, dim, lambda x: where(call("isnan", x), 0.0, x))


@rule("prod")
def prod(b: Builder, out: Meta, self: Value, dim: Dims = None, keepdim: bool = False) -> Value:
    return reduced(b, "prod", out, self, dim)


@rule("mean")
def mean(b: Builder, out: Meta, self: Value, dim: Dims = None, keepdim: bool = False) -> Value:
    total = reduced(b, "sum", Meta(computed(out.dtype), out.shape), self, dim)
    count = extent(self.shape, axes(dim, self.rank))
    return b.define(out, lambda *at: total.at(*at) / count, "mean")


@rule("amax", "max")
def amax(b: Builder, out: Meta, self: Value, dim: Dims = None, keepdim: bool = False) -> Value:
    return reduced(b, "max", out, self, dim)


@rule("amin", "min")
def amin(b: Builder, out: Meta, self: Value, dim: Dims = None, keepdim: bool = False) -> Value:
    return reduced(b, "min", out, self, dim)


@rule("max.dim")
def max_dim(
    b: Builder, out: tuple[Meta, Meta], self: Value, dim: int, keepdim: bool = False
) -> tuple[Value, Value]:
    return reduced(b, "max", out[0], self, dim), _place(b, "argmax", out[1], self, dim)


@rule("min.dim")
def min_dim(
    b: Builder, out: tuple[Meta, Meta], self: Value, dim: int, keepdim: bool = False
) -> tuple[Value, Value]:
    return reduced(b, "min", out[0], self, dim), _place(b, "argmin", out[1], self, dim)


@rule("argmax")
def argmax(b: Builder, out: Meta, self: Value, dim: Dims = None, keepdim: bool = False) -> Value:
    return _place(b, "argmax", out, self, dim)


@rule("argmin")
def argmin(b: Builder, out: Meta, self: Value, dim: Dims = None, keepdim: bool = False) -> Value:
    return _place(b, "argmin", out, self, dim)


def _place(b: Builder, kind: str, out: Meta, x: Value, dim: Dims) -> Value:
    """The first place of the largest or least element along a dimension, or of all."""
    if not x.rank:
        return b.define(out, lambda: cast("i64", 0), kind)
    return reduce(b, kind, out, x, axes(dim, x.rank), lambda *at: x.wide(*at), kind)


@rule("any")
def any_(b: Builder, out: Meta, self: Value, dim: Dims = None, keepdim: bool = False) -> Value:
    return reduce(b, "any", out, self, axes(dim, self.rank), lambda *at: _holds(self, at), "any")


@rule("all")
def all_(b: Builder, out: Meta, self: Value, dim: Dims = None, keepdim: bool = False) -> Value:
    return reduce(b, "all", out, self, axes(dim, self.rank), lambda *at: _holds(self, at), "all")


def _holds(x: Value, at: tuple[Expr, ...]) -> Expr:
    """Whether an element is not 0."""
    return x.at(*at) if x.dtype == "b8" else call("ne", x.at(*at), 0)


@rule("count_nonzero")
def count_nonzero(b: Builder, out: Meta, self: Value, dim: Dims = None) -> Value:
    def one(*at: Expr) -> Expr:
        return cast("i64", _holds(self, at))

    return reduce(b, "sum", out, self, axes(dim, self.rank), one, "count")


@rule("equal")
def equal(b: Builder, out: Meta, self: Value, other: Value) -> Value:
    """One truth value; False where shapes differ."""
    if self.shape != other.shape:
        return b.define(out, lambda: False, "equal")

    def same(*at: Expr) -> Expr:
        return call("eq", self.at(*at), other.at(*at))

    return reduce(b, "all", out, self, range(self.rank), same, "equal")


@rule("logsumexp")
def logsumexp(b: Builder, out: Meta, self: Value, dim: Dims, keepdim: bool = False) -> Value:
    dtype, dims = computed(out.dtype), axes(dim, self.rank)
    small = Meta(dtype, without(self.shape, dims))
    top = reduce(b, "max", small, self, dims, lambda *at: into(dtype, self, *at), "max")
    # an infinite maximum would make inf - inf
    shift = b.define(
        small, lambda *at: where(call("isinf", top.at(*at)), 0.0, top.at(*at)), "shift"
    )

    def term(*at: Expr) -> Expr:
        return call("exp", into(dtype, self, *at) - shift.at(*without(at, dims)))

    total = reduce(b, "sum", small, self, dims, term, "sum")

    def result(*at: Expr) -> Expr:
        at = without(at, dims) if len(out.shape) == self.rank else at
        return call("log", total.at(*at)) + shift.at(*at)

    return b.define(out, result, "logsumexp")


def moments(
    b: Builder, x: Value, dims: tuple[int, ...], dtype: str, correction: Term = 0
) -> tuple[Value, Value]:
    """Mean and variance along dimensions, which both lack: the mean first, then the mean of
    squared differences, divided by `count - correction`."""
    small, count = Meta(dtype, without(x.shape, dims)), extent(x.shape, dims)
    total = reduce(b, "sum", small, x, dims, lambda *at: into(dtype, x, *at), "sum")
    middle = b.define(small, lambda *at: total.at(*at) / count, "mean")

    def squared(*at: Expr) -> Expr:
        return call("square", into(dtype, x, *at) - middle.at(*without(at, dims)))

    squares = reduce(b, "sum", small, x, dims, squared, "squares")
    divisor = count if correction == 0 else call("maximum", cast(dtype, count) - correction, 0.0)
    return middle, b.define(small, lambda *at: squares.at(*at) / divisor, "var")


def _spread(
    b: Builder, out: Meta, x: Value, dims: tuple[int, ...], element: Element, value: Value
) -> Value:
    """A tensor that lacks dimensions, under the result's shape."""

    def body(*at: Expr) -> Expr:
        return element(value.at(*(without(at, dims) if len(at) == x.rank else at)))

    return b.define(out, body, "t")


def _correction(unbiased: bool | None, correction: float | None) -> Term:
    if correction is not None:
        return float(correction)
    return 0 if unbiased is False else 1.0


@rule("var")
def var(
    b: Builder,
    out: Meta,
    self: Value,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    correction: float | None = None,
) -> Value:
    dims = axes(dim, self.rank)
    _, found = moments(b, self, dims, computed(out.dtype), _correction(unbiased, correction))
    return _spread(b, out, self, dims, lambda v: v, found)


@rule("std")
def std(
    b: Builder,
    out: Meta,
    self: Value,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    correction: float | None = None,
) -> Value:
    dims = axes(dim, self.rank)
    _, found = moments(b, self, dims, computed(out.dtype), _correction(unbiased, correction))
    return _spread(b, out, self, dims, lambda v: call("sqrt", v), found)


@rule("var_mean")
def var_mean(
    b: Builder,
    out: tuple[Meta, Meta],
    self: Value,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    correction: float | None = None,
) -> tuple[Value, Value]:
    dims = axes(dim, self.rank)
    less = _correction(unbiased, correction)
    middle, found = moments(b, self, dims, computed(out[0].dtype), less)
    return (
        _spread(b, out[0], self, dims, lambda v: v, found),
        _spread(b, out[1], self, dims, lambda v: v, middle),
    )


@rule("std_mean")
def std_mean(
    b: Builder,
    out: tuple[Meta, Meta],
    self: Value,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    correction: float | None = None,
) -> tuple[Value, Value]:
    dims = axes(dim, self.rank)
    less = _correction(unbiased, correction)
    middle, found = moments(b, self, dims, computed(out[0].dtype), less)
    return (
        _spread(b, out[0], self, dims, lambda v: call("sqrt", v), found),
        _spread(b, out[1], self, dims, lambda v: v, middle),
    )


@rule("linalg_vector_norm")
def linalg_vector_norm(
    b: Builder, out: Meta, self: Value, ord: float = 2, dim: Dims = None, keepdim: bool = False
) -> Value:
    if math.isinf(ord):
        kind = "max" if ord > 0 else "min"
        return reduced(b, kind, out, self, dim, lambda x: call("abs", x))
    if ord == 0:
        return reduced(b, "sum", out, self, dim, lambda x: where(call("ne", x, 0), 1.0, 0.0))
    if ord == 1:
        return reduced(b, "sum", out, self, dim, lambda x: call("abs", x))
    powers: Element = lambda x: call("pow", call("abs", x), float(ord))  # noqa: E731
    whole = Meta(computed(out.dtype), out.shape)
    if ord == 2:
        total = reduced(b, "sum", whole, self, dim, lambda x: call("square", x))
        return b.pointwise(out, lambda x: call("sqrt", x), total, name="norm")
    total = reduced(b, "sum", whole, self, dim, powers)
    return b.pointwise(out, lambda x: call("pow", x, 1.0 / ord), total, name="norm")


@rule("norm")
def norm(
    b: Builder,
    out: Meta,
    self: Value,
    p: float | None = 2,
    dim: Dims = None,
    keepdim: bool = False,
) -> Value:
    return linalg_vector_norm(b, out, self, 2 if p is None else p, dim, keepdim)
