"""Matrices: their diagonals and triangles, products of vectors, and single numbers."""

from __future__ import annotations

from typing import NoReturn

from frontends.aten.table import rule
from frontends.builder import Builder, Meta, Value
from frontends.expressions import call, cast, expr, where
from ir.errors import KernelError
from ir.spec import Apply, Expr, Number


@rule("trace")
def trace(b: Builder, out: Meta, self: Value) -> Value:
    if self.shape[0] == self.shape[1]:
        return b.reduce("sum", out, (self.shape[0],), lambda i: _at(self, out, i, i), "trace")
    return b.reduce(
        "sum",
        out,
        self.shape,
        lambda i, j: where(Apply("eq", (i, j)), _at(self, out, i, j), 0),
        "trace",
    )


def _at(value: Value, out: Meta, i: Expr, j: Expr) -> Expr:
    return value.wide(i, j) if out.dtype == value.dtype else cast(out.dtype, value.at(i, j))


@rule("linalg_cross", "cross")
def cross(b: Builder, out: Meta, self: Value, other: Value, dim: int | None = -1) -> Value:
    """`y[i] = a[i + 1] * b[i + 2] - a[i + 2] * b[i + 1]`, counted from the start again after 2."""
    if dim is None:
        dim = next(d for d, size in enumerate(out.shape) if size == Number(3))
    dim %= len(out.shape)

    def element(*at: Expr) -> Expr:
        def read(value: Value, step: int) -> Expr:
            here = (*at[:dim], (at[dim] + step) % 3, *at[dim + 1 :])
            return b.operand(value, here, wide)

        return read(self, 1) * read(other, 2) - read(self, 2) * read(other, 1)

    wide = "f32" if out.dtype in ("f16", "bf16") else out.dtype
    return b.define(out, element)


@rule("tril_indices")
def tril_indices(b: Builder, out: Meta, row: int, col: int, offset: int = 0) -> Value:
    return _triangle(b, out, row, col, lambda r: (Number(0), _within(r + offset + 1, col)))


@rule("triu_indices")
def triu_indices(b: Builder, out: Meta, row: int, col: int, offset: int = 0) -> Value:
    return _triangle(b, out, row, col, lambda r: (_within(r + offset, col), expr(col)))


def _within(term: Expr, size: int) -> Expr:
    return call("minimum", call("maximum", term, 0), size)


def _triangle(b: Builder, out: Meta, row: int, col: int, span) -> Value:
    """Rows and columns of the elements from one column of each row to another."""

    def width(r: Expr) -> Expr:
        first, last = span(r)
        return last - first

    ends = b.scan("sum", Meta("i32", (Number(row),)), 0, width, "ends")
    rows = b.define(Meta("i32", (out.shape[1],)), lambda k: b.bucketize(k + 1, ends), "row")

    def element(which: Expr, k: Expr) -> Expr:
        here = rows.at(k)
        column = k - (ends.at(here) - width(here)) + span(here)[0]
        return where(which < 1, here, column)

    return b.define(out, element)


@rule("item", "_local_scalar_dense")
def item(b: Builder, out: object, self: Value) -> NoReturn:
    raise KernelError(
        "a number of a tensor is read into the program",
        allowed="tensors only: what a kernel computes does not steer Python",
        hint="keep it a tensor: `torch.where` in place of `if`, no `.item()`",
    )
