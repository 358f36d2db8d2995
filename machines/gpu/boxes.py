"""TMA boxes of matmul operands: whether operands can be copied as boxes, and what share of a box is useful."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from math import ceil, prod

from ir.nest.nest import Load, LoopNest
from ir.sizes import power_of_two
from ir.sizes import value as number


def in_steps_of_one(nest: LoopNest, tensors: Collection[str]) -> bool:
    """Whether the boxes of these tensors have unit strides, which the TMA copies of every language support."""
    return all(
        step == 1 or dict(launch.tiles).get(index) == 1
        for launch in nest.launches
        for s in launch.statements()
        if isinstance(s, Load) and s.tensor in tensors
        for one in s.region
        for index, step in one.terms
    )


def share_inside(
    nest: LoopNest, tensors: Collection[str], sizes: Mapping[str, int], windows: bool = False
) -> float:
    """The smallest share of a box of these tensors that is in bounds, 0 to 1.

    windows: considers only boxes of sliding windows.

    TMA copies whole boxes, whereas threads skip elements that are out of bounds. On an H200,
    transposed convolutions whose boxes were 0.53, 0.55, 0.80 and 0.89 in bounds took 1.55, 1.52,
    1.15 and 1.07 times as long with bulk copies.
    """
    return min(_shares(nest, tensors, sizes, windows), default=1.0)


def _shares(
    nest: LoopNest, tensors: Collection[str], sizes: Mapping[str, int], windows: bool
) -> Iterator[float]:
    for launch in nest.launches:
        extents = {g.index: g.size for g in launch.grid} | dict(launch.whole)
        tiles = dict(launch.tiles)
        for s in launch.statements():
            if isinstance(s, Load) and s.tensor in tensors:
                if windows and all(len(one.terms) < 2 for one in s.region):
                    continue
                along = {i for one in s.region for i, _ in one.terms if i in extents}
                yield prod(_filled(number(extents[i], sizes), tiles.get(i)) for i in along)


def _filled(size: int, tile: int | None) -> float:
    """The average share of the tiles along an index that is in bounds."""
    width = tile or size
    return size / (ceil(size / width) * power_of_two(width))
