"""Grouped matmuls: each group of rows, columns or terms has a matrix of its own, as experts do.

`offs` gives the end of each group, in order. What follows the last group belongs to none.
"""

from __future__ import annotations

from frontends.aten.contraction import matmul
from frontends.aten.table import rule
from frontends.builder import Builder, Meta, Value
from frontends.expressions import where
from ir.spec import Expr


@rule("_grouped_mm")
def grouped_mm(
    b: Builder,
    out: Meta,
    self: Value,
    mat2: Value,
    offs: Value | None = None,
    bias: Value | None = None,
    out_dtype: object = None,
) -> Value:
    """PyTorch takes no bias yet, and rounds to 16 bits."""
    if offs is None:
        return matmul(b, out, self, mat2)
    if self.rank == 2 and mat2.rank == 2:
        return _of_terms(b, out, self, mat2, offs)
    if self.rank == 2:
        return _of_rows(b, out, self, mat2, offs)
    return _of_columns(b, out, self, mat2, offs)


@rule("transformers::grouped_mm_fallback")  # which transformers calls for other floats than bf16
def grouped_mm_fallback(b: Builder, out: Meta, input: Value, weight: Value, offs: Value) -> Value:
    return _of_rows(b, out, input, weight, offs)


def _of_rows(b: Builder, out: Meta, x: Value, y: Value, offs: Value) -> Value:
    """`sum(x[m, k] * y[group[m], k, n], k)`; zeros for rows of no group."""
    group = _groups(b, x.shape[0], offs)

    def term(m: Expr, n: Expr, k: Expr) -> Expr:
        return x.wide(m, k) * y.wide(group.at(m), k, n, pad=0.0)

    return b.reduce("sum", out, x.shape[1:], term, "product")


def _of_columns(b: Builder, out: Meta, x: Value, y: Value, offs: Value) -> Value:
    """`sum(x[group[n], m, k] * y[k, n], k)`; zeros for columns of no group."""
    group = _groups(b, y.shape[1], offs)

    def term(m: Expr, n: Expr, k: Expr) -> Expr:
        return x.wide(group.at(n), m, k, pad=0.0) * y.wide(k, n)

    return b.reduce("sum", out, x.shape[2:], term, "product")


def _of_terms(b: Builder, out: Meta, x: Value, y: Value, offs: Value) -> Value:
    """`sum(x[m, k] * y[k, n], k)` over the k of each group."""
    starts = b.define(offs.meta, lambda g: where(g < 1, 0, offs.at(g - 1, pad=0.0)), "starts")

    def segment(g: Expr, *_: Expr) -> tuple[Expr, Expr]:
        return starts.at(g), offs.at(g)

    def term(g: Expr, m: Expr, n: Expr, k: Expr) -> Expr:
        return x.wide(m, k) * y.wide(k, n)

    return b.reduce("sum", out, (segment,), term, "product")


def _groups(b: Builder, size: Expr, offs: Value) -> Value:
    """The group of each position: how many groups end before it or at it."""
    return b.define(Meta("i32", (size,)), lambda m: b.bucketize(m + 1, offs), "group")
