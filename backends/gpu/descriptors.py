"""Descriptors: tensor maps and boxes for the TMA, and the condition under which it takes a tensor."""

from __future__ import annotations

from math import prod

from backends.backend import BackendError
from backends.gpu.blocks import Blocks
from backends.gpu.tile import Box, Describable, Descriptor, Name
from backends.gpu.values import ZERO, product, scaled, times, total
from ir.nest.bulk import box_dimensions
from ir.nest.nest import Load, Slice, Store
from ir.spec import DTYPES, Expr, Index, Number

_Groups = tuple[tuple[int, ...], ...]  # the dimensions of a region that each dimension of a box has
_Along = tuple[str, int]  # an index, empty for a single position, and its stride


def describe(
    s: Load | Store, dtype: str, shape: tuple[Expr, ...], blocks: Blocks, held: tuple[Expr, ...]
) -> tuple[Descriptor, Box]:
    """The descriptor of a tensor, and a region as a box of it. held: the shape of the box in the
    kernel. Raises BackendError where the region is no box."""
    rules = blocks.rules
    region = s.region
    groups: _Groups = tuple((n,) for n in range(len(region)))
    if 0 < rules.box_dimensions < len(groups):
        groups = box_dimensions(blocks.launch, region)
    # Dimensions that are merged into one have one element each, or the box covers all but the first.
    every = [[_along(s, region[n], blocks, g is groups[-1]) for n in g] for g in groups]
    if rules.box_rows and isinstance(s, Load):
        groups, every = _merged_rows(groups, every, region, shape, blocks)
    along = [_first(each) for each in every]
    found = [[blocks[i] for i, _ in each if i] for each in every]
    steps = tuple(step for _, step in along)
    launched = tuple(_extent([b.launched for b in each]) for each in found)
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
        shape=tuple(_extent([b.wide for b in each]) for each in found),
        held=held,
    )
    return descriptor, box


def _merged_rows(
    groups: _Groups,
    every: list[list[_Along]],
    region: tuple[Slice, ...],
    shape: tuple[Expr, ...],
    blocks: Blocks,
) -> tuple[_Groups, list[list[_Along]]]:
    """Merges each dimension that a box covers into the one before, except for the last one."""
    made: list[tuple[int, ...]] = []
    along: list[list[_Along]] = []
    for n, (group, each) in enumerate(zip(groups, every, strict=True)):
        covered = len(group) == 1 and blocks.covers(region[group[0]], shape[group[0]])
        last = n == len(groups) - 1
        if made and covered and not last and _runs(along[-1], each, blocks):
            made[-1], along[-1] = (*made[-1], *group), [*along[-1], *each]
        else:
            made.append(group)
            along.append(each)
    return tuple(made), along


def _runs(before: list[_Along], each: list[_Along], blocks: Blocks) -> bool:
    """Whether the elements of both are contiguous, and no more than a dimension may have."""
    widths = [blocks[i].width for i, _ in (*before, *each) if i]
    steps = {step for _, step in (*before, *each)}
    named = all(i for i, _ in before)
    return named and steps == {1} and all(widths) and prod(widths) <= blocks.rules.box_most


def _extent(widths: list[Expr]) -> Expr:
    """The number of elements along merged dimensions."""
    known = [w.value for w in widths if isinstance(w, Number)]
    return Number(prod(known)) if len(known) == len(widths) else product(widths)


def _first(each: list[_Along]) -> _Along:
    """The index and the stride of merged dimensions."""
    return next((one for one in each if one[0]), each[-1])


def _position(
    group: tuple[int, ...], region: tuple[Slice, ...], shape: tuple[Expr, ...], blocks: Blocks
) -> Expr:
    """The start of a box along dimensions that are merged into one."""
    made: Expr = ZERO
    for n in group:
        start = _start(region[n], blocks)
        made = start if made == ZERO else total([times(made, shape[n]), start])
    return made


def _along(s: Load | Store, one: Slice, blocks: Blocks, last: bool) -> _Along:
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
