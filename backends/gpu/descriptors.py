"""Descriptors: tensors as TMA is told of them, and when it can take them."""

from __future__ import annotations

from backends.backend import BackendError
from backends.gpu.blocks import Blocks, IndexBlock
from backends.gpu.tile import Box, Describable, Descriptor, Name
from backends.gpu.values import total
from ir.nest.nest import Load, Slice, Store
from ir.spec import DTYPES, Expr, Index, Number


def describe(
    s: Load | Store, dtype: str, shape: tuple[Expr, ...], blocks: Blocks, held: tuple[Expr, ...]
) -> tuple[Descriptor, Box]:
    """The descriptor of a tensor, and the box of it that a region is, held in a shape; BackendError
    where the region is no box."""
    rules = blocks.rules
    found = [_block(s, one, blocks) for one in s.region]
    launched = tuple(b.launched if b else Number(1) for b in found)
    narrow = tuple(w for w in launched if not isinstance(w, Number))
    row = shape[-1] if len(shape) > 1 else None
    name = Name("descriptor", s.value)
    descriptor = Descriptor(
        name,
        flag=Name("bulk", s.value),
        tensor=s.tensor,
        sizes=shape,
        strides=tuple(shape[d + 1 :] for d in range(len(shape))),
        box=launched,
        condition=Describable(row, rules.box_aligned // DTYPES[dtype], narrow, rules.box_most),
    )
    box = Box(
        name,
        axes=tuple(one.terms[0][0] if one.terms else "" for one in s.region),
        at=tuple(_start(one, blocks) for one in s.region),
        shape=tuple(b.wide if b else Number(1) for b in found),
        held=held,
    )
    return descriptor, box


def _block(s: Load | Store, one: Slice, blocks: Blocks) -> IndexBlock | None:
    """The block of a box along a dimension; None where it has one element."""
    most = blocks.rules.box_most
    plain = one.rows is None and len(one.terms) < 2 and all(c == 1 for _, c in one.terms)
    block = blocks[one.terms[0][0]] if one.terms else None
    padded = block is not None and block.tile and block.tile != block.width
    if not plain or padded or block is not None and block.width > most:
        raise BackendError(
            "emit",
            f"`{s.tensor}` cannot be moved in bulk: its tiles are no boxes of powers of two, "
            f"{most} at most along each dimension",
        )
    return block


def _start(one: Slice, blocks: Blocks) -> Expr:
    """Where a box starts along a dimension."""
    parts: list[Expr] = []
    if one.terms and (blocks[one.terms[0][0]].tile or blocks[one.terms[0][0]].scalar):
        parts.append(Index(one.terms[0][0]))
    return total([*parts, one.offset])
