"""Axes: dimensions of a tensor as calls name them, and where a result reads its source."""

from __future__ import annotations

from collections.abc import Sequence

from frontends.builder import Builder, Meta, Shape, Value
from frontends.expressions import product
from ir.spec import Expr

Dims = int | Sequence[int] | None


def axis(dim: int, rank: int) -> int:
    """A dimension counted from the front. A tensor without dimensions has dimension 0."""
    return dim % max(rank, 1)


def axes(dim: Dims, rank: int) -> tuple[int, ...]:
    """Dimensions counted from the front, ascending: all where none is named."""
    named = (dim,) if isinstance(dim, int) else tuple(dim or range(rank))
    return tuple(sorted({axis(d, rank) for d in named})) if rank else ()


def extent(shape: Shape, dims: Sequence[int]) -> Expr:
    """How many elements lie along dimensions."""
    return product(tuple(shape[d] for d in dims))


def merged(
    at: Sequence[Expr], reduced: Sequence[Expr], dims: Sequence[int], rank: int
) -> tuple[Expr, ...]:
    """The source's positions, from those of a result that lacks `dims`, or has one element along
    each, and from the indices that run along `dims`."""
    if len(at) == rank:
        kept = [i for d, i in enumerate(at) if d not in dims]
    else:
        kept = list(at)
    given = dict(zip(dims, reduced, strict=True))
    kept.reverse()
    return tuple(given[d] if d in given else kept.pop() for d in range(rank))


def without(shape: Sequence[Expr], dims: Sequence[int]) -> Shape:
    """Sizes, or positions, of the dimensions that are not named."""
    return tuple(s for d, s in enumerate(shape) if d not in dims)


def reduce(
    b: Builder, kind: str, meta: Meta, x: Value, dims: Sequence[int], body, name: str = ""
) -> Value:
    """A reduction of x along dimensions, which the result lacks or has with one element.

    body: of positions in x.
    """
    rank = len(meta.shape)

    def along(*indices: Expr) -> Expr:
        return body(*merged(indices[:rank], indices[rank:], dims, x.rank))

    return b.reduce(kind, meta, tuple(x.shape[d] for d in dims), along, name)
