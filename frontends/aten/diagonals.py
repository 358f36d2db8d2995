"""Diagonals and triangles of matrices."""

from __future__ import annotations

from collections.abc import Sequence

from frontends.aten.table import rule
from frontends.axes import axis
from frontends.builder import Body, Builder, Meta, Value
from frontends.expressions import call, where
from ir.spec import Expr, Index


@rule("diagonal", "diagonal_copy")
def diagonal(
    b: Builder, out: Meta, self: Value, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Value:
    """The diagonal is the last dimension of the result."""
    one, other = axis(dim1, self.rank), axis(dim2, self.rank)

    def body(*at: Index) -> Expr:
        *rest, d = at
        places = {one: _plus(d, max(-offset, 0)), other: _plus(d, max(offset, 0))}
        outer = iter(rest)
        return self.at(*(places[n] if n in places else next(outer) for n in range(self.rank)))

    return b.define(out, body)


def _plus(i: Index, by: int) -> Expr:
    return i + by if by else i


@rule("linalg_diagonal")
def linalg_diagonal(
    b: Builder, out: Meta, A: Value, offset: int = 0, dim1: int = -2, dim2: int = -1
) -> Value:
    return diagonal(b, out, A, offset, dim1, dim2)


@rule("diag_embed")
def diag_embed(
    b: Builder, out: Meta, self: Value, offset: int = 0, dim1: int = -2, dim2: int = -1
) -> Value:
    """The last dimension on a diagonal of zeros."""
    return _placed(b, out, self, (offset, dim1, dim2), lambda *at: 0)


@rule("diagonal_backward")
def diagonal_backward(
    b: Builder,
    out: Meta,
    grad_output: Value,
    input_sizes: Sequence[int],
    offset: int,
    dim1: int,
    dim2: int,
) -> Value:
    return _placed(b, out, grad_output, (offset, dim1, dim2), lambda *at: 0)


@rule("diagonal_scatter")
def diagonal_scatter(
    b: Builder, out: Meta, self: Value, src: Value, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Value:
    """`self` with a diagonal replaced."""
    return _placed(b, out, src, (offset, dim1, dim2), self.at)


def _placed(
    b: Builder, out: Meta, source: Value, diagonal: tuple[int, int, int], elsewhere: Body
) -> Value:
    """The last dimension of a tensor on a diagonal (offset, dim1, dim2) of the result."""
    offset, *dims = diagonal
    one, other = (axis(d, len(out.shape)) for d in dims)

    def body(*at: Index) -> Expr:
        rest = [i for n, i in enumerate(at) if n not in (one, other)]
        down = max(-offset, 0)
        read = source.at(*rest, at[one] - down if down else at[one], pad=0.0)
        on = call("eq", at[other], at[one] + offset if offset else at[one])
        return where(on, read, elsewhere(*at))

    return b.define(out, body)


@rule("diag")
def diag(b: Builder, out: Meta, self: Value, diagonal: int = 0) -> Value:
    """A matrix of a vector, a vector of a matrix."""
    if self.rank == 1:
        return diag_embed(b, out, self, diagonal)
    return linalg_diagonal(b, out, self, diagonal)


@rule("tril")
def tril(b: Builder, out: Meta, self: Value, diagonal: int = 0) -> Value:
    """Zeros above a diagonal."""
    return _kept(b, out, self, lambda i, j: j <= _plus(i, diagonal))


@rule("triu")
def triu(b: Builder, out: Meta, self: Value, diagonal: int = 0) -> Value:
    """Zeros below a diagonal."""
    return _kept(b, out, self, lambda i, j: j >= _plus(i, diagonal))


def _kept(b: Builder, out: Meta, self: Value, keeps: Body) -> Value:
    zero = False if out.dtype == "b8" else 0
    return b.define(out, lambda *at: where(keeps(*at[-2:]), self.at(*at), zero))
