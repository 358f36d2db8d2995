"""Recognises equations that concatenate tensors.

t[n, c, y] = where(c < C, pad(x[n, c, y], 0.0), pad(a[n, c - C, y], 0.0))
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ir.affine import affine
from ir.partition.views import is_plain
from ir.sizes import shape
from ir.spec import Apply, Equation, Expr, Index, Number, Read, Tensor

# most operands that are selected by a linear chain of comparisons; more are selected by binary
# search
_IN_A_ROW = 16


@dataclass(frozen=True, slots=True)
class JoinPart:
    """An operand of a concatenation and its extent along the concatenated dimension."""

    tensor: str
    start: int
    end: int


def joined_parts(
    e: Equation, tensors: Mapping[str, Tensor]
) -> tuple[int, tuple[JoinPart, ...]] | None:
    """The dimension along which an equation of a literal spec concatenates, and the operands in
    order.

    None if it is not a concatenation of whole tensors.

    tensors: by name, the equation's target and the tensors that it reads.
    """
    match e.value:
        case Apply("where", (Apply("lt", (Index(along), Number())), _, _)):
            pass
        case _:
            return None
    if e.accumulate or not is_plain(e) or along not in e.indices:
        return None
    dim, whole = e.indices.index(along), shape(tensors[e.target], {})
    parts: list[JoinPart] = []
    for start, end, piece in _pieces(e.value, along, 0, whole[dim]):
        if not isinstance(piece, Read) or not 0 <= start < end <= whole[dim]:
            return None
        read = tensors[piece.tensor]
        if read.dtype != tensors[e.target].dtype or len(piece.at) != len(e.at):
            return None
        others = all(
            p == q for d, (p, q) in enumerate(zip(piece.at, e.at, strict=True)) if d != dim
        )
        if not others or shape(read, {}) != (*whole[:dim], end - start, *whole[dim + 1 :]):
            return None
        if not _is_shifted(piece.at[dim], along, -start):
            return None
        parts.append(JoinPart(piece.tensor, start, end))
    return dim, tuple(parts)


def _pieces(value: Expr, along: str, low: int, high: int) -> Iterator[tuple[int, int, Expr]]:
    """The expressions that nested conditions on an index select, each with its start and end."""
    match value:
        case Apply("where", (Apply("lt", (Index(name), Number(cut))), before, after)) if (
            name == along
        ):
            yield from _pieces(before, along, low, int(cut))
            yield from _pieces(after, along, int(cut), high)
        case _:
            yield low, high, value


def _is_shifted(position: Expr, index: str, by: int) -> bool:
    form = affine(position)
    return form is not None and form.terms == ((index, 1),) and form.offset == Number(by)


def joined(at: tuple[Expr, ...], dim: int, parts: Sequence[JoinPart]) -> Expr:
    """The element at a position of a concatenation.

    at: the position along each dimension.
    parts: contiguous operands, starting at 0.
    """
    if len(parts) == 1:
        (part,) = parts
        place = Apply("sub", (at[dim], Number(part.start))) if part.start else at[dim]
        return Read(part.tensor, (*at[:dim], place, *at[dim + 1 :]), pad=0.0)
    first = len(parts) // 2 if len(parts) > _IN_A_ROW else 1
    below = Apply("lt", (at[dim], Number(parts[first - 1].end)))
    return Apply("where", (below, joined(at, dim, parts[:first]), joined(at, dim, parts[first:])))
