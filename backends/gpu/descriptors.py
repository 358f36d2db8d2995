"""Descriptors: tensors as TMA is told of them, and when it can take them."""

from __future__ import annotations

from backends.backend import BackendError
from backends.gpu.blocks import Blocks
from backends.gpu.tile import Box, Describable, Descriptor, Name
from backends.gpu.values import scaled, total
from ir.nest.nest import Load, Slice, Store
from ir.spec import DTYPES, Expr, Index, Number


def describe(
    s: Load | Store, dtype: str, shape: tuple[Expr, ...], blocks: Blocks, held: tuple[Expr, ...]
) -> tuple[Descriptor, Box]:
    """The descriptor of a tensor, and the box of it that a region is, held in a shape; BackendError
    where the region is no box."""
    rules = blocks.rules
    indices = [_along(s, one, blocks, one is s.region[-1]) for one in s.region]
    found = [blocks[i] if i else None for i, _ in indices]
    steps = tuple(step for _, step in indices)
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
        steps=steps,
        condition=Describable(row, rules.box_aligned // DTYPES[dtype], narrow, rules.box_most),
    )
    box = Box(
        name,
        axes=tuple(i for i, _ in indices),
        at=tuple(_start(one, blocks) for one in s.region),
        shape=tuple(b.wide if b else Number(1) for b in found),
        held=held,
    )
    return descriptor, box


def _along(s: Load | Store, one: Slice, blocks: Blocks, last: bool) -> tuple[str, int]:
    """The index that a dimension of a box runs along, empty for one position, and how far apart its
    positions are. Other indices only move where it begins."""
    most, steps = blocks.rules.box_most, 1 if last else blocks.rules.box_steps
    wide = [(i, c) for i, c in one.terms if not blocks[i].scalar]
    index, step = wide[0] if wide else ("", 1)
    block = blocks[index] if index else None
    padded = block is not None and block.tile and block.tile != block.width
    plain = one.rows is None and len(wide) < 2 and 0 < step <= steps
    if not plain or padded or block is not None and block.width * step > most:
        raise BackendError(
            "emit",
            f"`{s.tensor}` cannot be moved in bulk: its tiles are no boxes of powers of two, "
            f"{most} at most along each dimension, in steps of {steps} at most",
        )
    return index, step


def _start(one: Slice, blocks: Blocks) -> Expr:
    """Where a box starts along a dimension."""
    moving = [(i, c) for i, c in one.terms if blocks[i].tile or blocks[i].scalar]
    return total([*(scaled(Index(i), c) for i, c in moving), one.offset])
