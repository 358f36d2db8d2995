"""Windows: overlapping TMA boxes of one tensor, which shared memory holds once.

The taps of a filter read the same rows of an image at shifted positions. Where a loop loads the
boxes of several taps in one iteration (`unroll` of a tap's index), and they differ by whole rows,
one box with the rows of all is loaded. A tap's tile is a part of it that begins some rows later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from backends.gpu import tile as of
from backends.gpu.tile import Name
from ir.spec import Apply, Expr, Number


@dataclass(frozen=True, slots=True)
class Window:
    """A load whose box is a part of a larger box, or which loads the larger box."""

    home: Name  # the load of the whole box, possibly this one
    rows: int  # rows of the box before it, along the first axis of its tile
    more: int  # rows of the whole box beyond those of one load


def windows(
    loads: Sequence[tuple[Name, of.Box, str, int]], descriptors: Mapping[Name, of.Descriptor]
) -> dict[Name, Window]:
    """The windows among some loads; empty where the whole boxes would not have fewer rows. loads:
    each with its box, the first axis of its tile, and its elements along that axis."""
    groups: dict[object, list[tuple[int, Name, int]]] = {}
    for name, box, axis, extent in loads:
        given = descriptors[box.descriptor]
        if axis not in box.axes or given.steps[box.axes.index(axis)] != 1:
            continue
        place = box.axes.index(axis)
        begins, shift = _sum(box.at[place])
        others = (*box.at[:place], begins, *box.at[place + 1 :])
        groups.setdefault((given.tensor, box.axes, others), []).append((shift, name, extent))
    found: dict[Name, Window] = {}
    for group in (g for g in groups.values() if len(g) > 1):
        (least, home, extent), *_, (most, _, _) = ordered = sorted(group, key=lambda one: one[0])
        distinct = len({shift for shift, _, _ in group}) == len(group)
        if distinct and extent + most - least < len(group) * extent:
            found |= {n: Window(home, shift - least, most - least) for shift, n, _ in ordered}
    return found


def widened(load: of.Load, axis: str, end: Expr) -> of.Load:
    """The load of a whole box by threads, with more rows along an axis than the grid's tile, masked
    at the end of the tensor. end: the tensor's extent there."""
    place = load.place
    masks = [c for c in place.mask if not _checks(c, axis)]
    rows = next(c for c in place.mask if c not in masks and not isinstance(c, of.Check))
    inside = [c for c in place.mask if isinstance(c, of.Check) and _checks(c, axis)]
    if not inside:
        assert isinstance(rows, of.Spread), "a mask of an axis of a tile"
        at = of.Spread(Name("positions", axis), rows.axes)
        inside = [of.Check(at, below=end)]
    return replace(load, place=replace(place, mask=(*masks, *inside)))


def _checks(condition: Expr, axis: str) -> bool:
    """Whether a condition tests positions along an axis."""
    named = (n for n in condition.walk() if isinstance(n, Name))
    return any(n.sort in ("mask", "positions") and n.stem == axis for n in named)


def _sum(expr: Expr) -> tuple[Expr, int]:
    """An expression without its added constant, and that constant."""
    match expr:
        case Apply("add", (a, Number(by))):
            return a, int(by)
        case Apply("sub", (a, Number(by))):
            return a, -int(by)
    return expr, 0
