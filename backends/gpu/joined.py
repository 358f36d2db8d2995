"""Joined axes: stores contiguous axes of a tile as one.

before: offs_m = m_at + [0, 64), offs_n = [0, 2), store(y + offs_m[:, None] * 2 + offs_n, value)
after:  offs_m_n = m_at * 2 + [0, 128), store(y + offs_m_n, reshape(value, 128))

The compiler then sees that the elements are contiguous, and neighbouring threads store neighbouring
elements. Where the last axis is short, Triton 3.6 assigns the threads of a warp to the first axis
instead: on an H200 a transposed convolution took 4161 us so, and 1501 us with its axes joined.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from backends.gpu.blocks import Blocks, IndexBlock, is_one_index
from backends.gpu.tile import Assign, Bounds, Name, Positions, Statement
from backends.gpu.values import ZERO, times
from ir.nest.nest import Slice, Store
from ir.spec import Expr, Number


@dataclass(frozen=True, slots=True)
class Joined:
    """A store whose last axes are one."""

    axes: tuple[str, ...]  # of the value before it is reshaped
    into: tuple[str, ...]  # the axes that are stored
    region: tuple[Slice, ...]
    shape: tuple[Expr, ...]  # of the tensor, with the dimensions of the joined axes as one
    block: IndexBlock  # of the joined axis
    positions: tuple[Statement, ...]


def joined(
    s: Store, axes: tuple[str, ...], blocks: Blocks, shape: tuple[Expr, ...]
) -> Joined | None:
    """The store with its last axes joined; None where they are not contiguous.

    axes: of the value. shape: of the tensor, one size for each dimension of the region.
    """
    if len(s.region) != len(shape) or s.bulk or s.reduction or s.epilogue:
        return None
    first = len(shape) - 1
    while first > 0 and blocks.covers(s.region[first], shape[first]):
        before = s.region[first - 1]
        if not is_one_index(before) or blocks[before.terms[0][0]].scalar:
            break
        first -= 1
    own = tuple(one.terms[0][0] for one in s.region[first:] if is_one_index(one))
    if len(own) < 2 or not set(own) <= set(axes):
        return None
    head, *rest = (blocks[i] for i in own)
    by, size = prod(b.width for b in rest), head.size
    if head.tile != head.width and head.tile or not head.width or not isinstance(size, Number):
        return None
    name = "_".join(own)
    block = IndexBlock(
        name,
        width=head.width * by,
        tile=head.tile * by,
        size=Number(size.value * by),
        least=1,
        checks=head.checks,
        flag=False,
    )
    others = tuple(i for i in axes if i not in own)
    one = Slice(name, ((name, 1),), ZERO)
    return Joined(
        axes=(*others, *own),
        into=(*others, name),
        region=(*s.region[:first], one),
        shape=(*shape[:first], block.size),
        block=block,
        positions=tuple(_positions(block, head, by)),
    )


def _positions(block: IndexBlock, head: IndexBlock, by: int) -> list[Statement]:
    """The statements that compute the positions of a joined axis from the origin of its first."""
    origin, name = Name("origin", block.index), Name("positions", block.index)
    made: list[Statement] = []
    if head.tile:
        made.append(Assign(origin, times(Name("origin", head.index), Number(by))))
    made.append(Positions(name, origin if head.tile else None, block.wide))
    if block.checks:
        made.append(Bounds(Name("mask", block.index), name, block.size, None))
    return made
