"""Distances between vectors."""

from __future__ import annotations

import math

from frontends.aten.table import rule
from frontends.builder import Builder, Meta, Value, computed
from frontends.expressions import Term, call, cast, expr, where
from ir.spec import Apply, Expr


def _reduction(p: float) -> str:
    return {math.inf: "max", -math.inf: "min"}.get(p, "sum")


def _power(difference: Expr, p: float) -> Expr:
    """What is reduced."""
    size = call("abs", difference)
    if p == 0:
        return where(Apply("ne", (difference, expr(0.0))), 1.0, 0.0)
    if p == 1 or math.isinf(p):
        return size
    return difference * difference if p == 2 else call("pow", size, p)


def _root(total: Expr, p: float) -> Expr:
    if p in (0, 1) or math.isinf(p):
        return total
    return call("sqrt", total) if p == 2 else call("pow", total, 1.0 / p)


def _reduced(b: Builder, out: Meta, p: float, size: Term, difference) -> Value:
    wide = computed(out.dtype)
    meta = Meta(wide, out.shape)
    total = b.reduce(
        _reduction(p), meta, (size,), lambda *at: cast(wide, _power(difference(*at), p)), "powers"
    )
    return b.define(out, lambda *at: _root(total.at(*at), p), "distance")


@rule("_cdist_forward", "cdist")
def _cdist_forward(
    b: Builder, out: Meta, x1: Value, x2: Value, p: float = 2.0, compute_mode: int | None = None
) -> Value:
    def difference(*at: Expr) -> Expr:
        *batch, row, column, k = at
        wide = computed(out.dtype)
        first = b.operand(x1, (*batch, row, k), wide)
        return first - b.operand(x2, (*batch, column, k), wide)

    return _reduced(b, out, p, x1.shape[-1], difference)


@rule("_pdist_forward", "pdist")
def _pdist_forward(b: Builder, out: Meta, self: Value, p: float = 2.0) -> Value:
    """Between all rows: of (0, 1), (0, 2), ..., (1, 2), ... in order."""
    count = self.shape[0]

    def start(row: Expr) -> Expr:
        return row * (count * 2 - row - 1) // 2

    rows = b.reduce(
        "sum",
        Meta("i32", out.shape),
        (count,),
        lambda i, r: where(call("and", r > 0, start(r) <= i), 1, 0),
        "row",
    )
    columns = b.define(rows.meta, lambda i: i - start(rows.at(i)) + rows.at(i) + 1, "column")
    return _reduced(
        b,
        out,
        p,
        self.shape[1],
        lambda i, k: self.wide(rows.at(i), k) - self.wide(columns.at(i), k),
    )


@rule("pairwise_distance")
def pairwise_distance(
    b: Builder,
    out: Meta,
    x1: Value,
    x2: Value,
    p: float = 2.0,
    eps: float = 1e-06,
    keepdim: bool = False,
) -> Value:
    def difference(*at: Expr) -> Expr:
        own = (*(at[:-2] if keepdim else at[:-1]), at[-1])
        wide = computed(out.dtype)
        return b.operand(x1, own, wide) - b.operand(x2, own, wide) + eps

    size = x1.shape[-1] if x1.shape[-1] != expr(1) else x2.shape[-1]
    return _reduced(b, out, p, size, difference)
