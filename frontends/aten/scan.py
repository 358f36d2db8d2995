"""Scans: running reductions along one dimension."""

from __future__ import annotations

from frontends.aten.reduction import into
from frontends.aten.table import rule
from frontends.axes import axis
from frontends.builder import Builder, Meta, Value, computed
from frontends.expressions import call, cast, either, where
from ir.spec import Expr


def _scan(b: Builder, kind: str, out: Meta, x: Value, dim: int) -> Value:
    dtype = computed(out.dtype)
    if not x.rank:
        return b.define(out, lambda: into(dtype, x), kind)
    return b.scan(kind, out, axis(dim, x.rank), lambda *at: into(dtype, x, *at), kind)


@rule("cumsum")
def cumsum(b: Builder, out: Meta, self: Value, dim: int) -> Value:
    return _scan(b, "sum", out, self, dim)


@rule("cumprod")
def cumprod(b: Builder, out: Meta, self: Value, dim: int) -> Value:
    return _scan(b, "prod", out, self, dim)


@rule("cummax")
def cummax(b: Builder, out: tuple[Meta, Meta], self: Value, dim: int) -> tuple[Value, Value]:
    return _extremum(b, "max", out, self, dim)


@rule("cummin")
def cummin(b: Builder, out: tuple[Meta, Meta], self: Value, dim: int) -> tuple[Value, Value]:
    return _extremum(b, "min", out, self, dim)


def _extremum(
    b: Builder, kind: str, out: tuple[Meta, Meta], x: Value, dim: int
) -> tuple[Value, Value]:
    """Running extrema, and of each the last place so far that has it."""
    values, place = _scan(b, kind, out[0], x, dim), axis(dim, x.rank)
    if not x.rank:
        return values, b.define(out[1], lambda: cast("i64", 0), "place")

    def here(*at: Expr) -> Expr:
        found = call("eq", x.at(*at), values.at(*at))
        if x.dtype in ("f64", "f32", "f16", "bf16"):
            found = either(found, call("isnan", x.at(*at)))
        return where(found, at[place], 0)

    return values, b.scan("max", out[1], place, here, "place")


@rule("logcumsumexp")
def logcumsumexp(b: Builder, out: Meta, self: Value, dim: int) -> Value:
    """Each place sums all before it, less the maximum so far."""
    if not self.rank:
        return b.copy(self)
    dim = axis(dim, self.rank)
    dtype = computed(out.dtype)
    whole = Meta(dtype, out.shape)
    top = _scan(b, "max", whole, self, dim)
    shift = b.pointwise(whole, lambda t: where(call("isinf", t), 0.0, t), top, name="shift")

    def term(*indices: Expr) -> Expr:
        at, k = indices[:-1], indices[-1]
        earlier = self.wide(*at[:dim], k, *at[dim + 1 :])
        return where(k <= at[dim], call("exp", earlier - shift.at(*at)), 0.0)

    total = b.reduce("sum", whole, (self.shape[dim],), term, "sum")
    return b.pointwise(out, lambda s, t: call("log", s) + t, total, shift, name="logcumsumexp")
