"""Descriptors: tensor maps and boxes for the TMA, and the condition under which it takes a tensor."""

from __future__ import annotations

from backends.backend import BackendError
from backends.gpu.blocks import Blocks
from backends.gpu.tile import Box, Describable, Descriptor, Name
from backends.gpu.values import ZERO, product, scaled, times, total
from ir.nest.bulk import box_dimensions
from ir.nest.nest import Load, Slice, Store
from ir.spec import DTYPES, Expr, Index, Number


def describe(
    s: Load | Store, dtype: str, shape: tuple[Expr, ...], blocks: Blocks, held: tuple[Expr, ...]
) -> tuple[Descriptor, Box]:
    """The descriptor of a tensor, and a region as a box of it. held: the shape of the box in the
    kernel. Raises BackendError where the region is no box."""
    rules = blocks.rules
    region = s.region
    groups: tuple[tuple[int, ...], ...] = tuple((n,) for n in range(len(region)))
    if 0 < rules.box_dimensions < len(groups):
        groups = box_dimensions(blocks.launch, region)
    # Dimensions that are merged into one have one element each.
    along = [_along(s, region[g[-1]], blocks, g is groups[-1]) for g in groups]
    found = [blocks[i] if i else None for i, _ in along]
    steps = tuple(step for _, step in along)
    launched = tuple(b.launched if b else Number(1) for b in found)
    narrow = tuple(w for w in launched if not isinstance(w, Number))
    row = shape[-1] if len(shape) > 1 else None
    name = Name("descriptor", s.value)
    descriptor = Descriptor(
        name,
        flag=Name("bulk", s.value),
        tensor=s.tensor,
        sizes=tuple(product([shape[n] for n in group]) for group in groups),
        strides=tuple(shape[group[-1] + 1 :] for group in groups),
        box=launched,
        steps=steps,
        condition=Describable(row, rules.box_aligned // DTYPES[dtype], narrow, rules.box_most),
    )
    box = Box(
        name,
        axes=tuple(i for i, _ in along),
        at=tuple(_position(group, region, shape, blocks) for group in groups),
        shape=tuple(b.wide if b else Number(1) for b in found),
        held=held,
    )
    return descriptor, box


def _position(
    group: tuple[int, ...], region: tuple[Slice, ...], shape: tuple[Expr, ...], blocks: Blocks
) -> Expr:
    """The start of a box along dimensions that are merged into one."""
    made: Expr = ZERO
    for n in group:
        start = _start(region[n], blocks)
        made = start if made == ZERO else total([times(made, shape[n]), start])
    return made


def _along(s: Load | Store, one: Slice, blocks: Blocks, last: bool) -> tuple[str, int]:
    """The index along a dimension of a box, empty for a single position, and its stride. Other
    indices only move the start of the box."""
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
    """The start of a box along a dimension."""
    moving = [(i, c) for i, c in one.terms if blocks[i].tile or blocks[i].scalar]
    return total([*(scaled(Index(i), c) for i, c in moving), one.offset])
