"""The tuning size if runs are slow: whole if a run is affordable, else its tiling at fewer
elements, with several tiles in every loop and an uneven tail."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from ir.errors import KernelError
from ir.nest.nest import Dot, Launch, Loop, LoopNest, Statement
from ir.reference.drawn_shapes import fitting
from ir.sizes import bind, free_sizes, value
from ir.spec import Size
from ir.verify import facts
from ir.workload import Sizes

TILES = 2  # whole tiles along an index of a reduced size; the tail follows them


@dataclass(frozen=True, slots=True)
class RunCost:
    """The cost of running a nest, counted from its statements."""

    steps: float = 0.0  # statements, over all thread blocks and iterations
    elements: float = 0.0  # computed elements, over all statements

    def seconds(self, of: RunCost) -> float:
        """The approximate seconds, with the seconds of a step and of an element in `of`."""
        return self.steps * of.steps + self.elements * of.elements


# Seconds of a step and of an element on slow runners, measured on two cores and rounded up. An
# interpreter of threads is dominated by the elements of matmuls, one of tiles by its steps.
SLOW_RUNS: Mapping[str, RunCost] = {
    "interpreter": RunCost(2e-4, 5e-8),
    "emulator": RunCost(1e-4, 2e-8),
}
TUNED_SECONDS = 1.5  # seconds that runs at the tuning sizes may take, all together


def run_cost(nest: LoopNest, sizes: Sizes) -> RunCost:
    """The cost of a run at some sizes. A range that depends on data counts as whole."""
    bound = bind(nest.spec, sizes)
    steps = elements = 0.0
    for launch in nest.launches:
        inner = _cost(launch, launch.body, nest, bound)
        once = _cost(launch, launch.once, nest, bound)
        blocks = prod(-(-value(axis.size, bound) // axis.tile) for axis in launch.grid)
        runs = blocks * launch.times(bound)
        steps += runs * (inner.steps + once.steps)
        elements += runs * (inner.elements + once.elements)
    return RunCost(steps, elements)


def tuning_shape(
    nest: LoopNest, sizes: Sizes, seed: int, each: RunCost, seconds: float, whole: bool = True
) -> tuple[Sizes, bool] | None:
    """The tuning size or a smaller size with its tiling, and whether it is smaller; None if no such
    size is affordable.

    each: seconds of a step and of an element. seed: draws the tail. whole: whether there is a
    reference for the tuning size.
    """
    if whole and run_cost(nest, sizes).seconds(each) <= seconds:
        return sizes, False
    for reduced in _reduced(nest, sizes, random.Random(seed)):
        possible = fitting(nest.spec, reduced) and reduced != sizes
        if possible and run_cost(nest, reduced).seconds(each) <= seconds:
            return reduced, True
    return None


def _reduced(nest: LoopNest, sizes: Sizes, rng: random.Random) -> Iterator[dict[str, int]]:
    """Smaller sizes with the tiling of `sizes`. Sizes without tiles stay at first, then shrink."""
    tiles = _tiles(nest)
    made = {}
    for name, most in sizes.items():
        tile = tiles.get(name, 0)
        if tile:
            tail = rng.randint(1, tile - 1) if tile > 1 else 1
            made[name] = min(most, TILES * tile + tail)
    untiled = [name for name in sizes if name not in made]
    for most_untiled in (max(sizes.values(), default=1), 257, 67, 19, 3):
        kept = {n: sizes[n] if sizes[n] <= most_untiled else most_untiled for n in untiled}
        yield {name: {**made, **kept}[name] for name in sizes}


def _tiles(nest: LoopNest) -> dict[str, int]:
    """By size: the largest tile of an index with this extent."""
    known = facts(nest.variant).ranges
    found: dict[str, int] = {}
    for launch in nest.launches:
        for index, tile in launch.tiles:
            high = known[index].high if index in known else None
            if isinstance(high, Size) and high.name in free_sizes(nest.spec):
                found[high.name] = max(found.get(high.name, 0), tile)
    return found


def _cost(
    launch: Launch, block: tuple[Statement, ...], nest: LoopNest, sizes: Mapping[str, int]
) -> RunCost:
    steps = elements = 0.0
    for statement in block:
        if isinstance(statement, Loop):
            inner = _cost(launch, statement.body, nest, sizes)
            iterations = -(-_extent(nest, launch, statement.index, sizes) // statement.tile)
            steps += iterations * inner.steps
            elements += iterations * inner.elements
            continue
        steps += 1
        elements += _elements(launch, statement, sizes)
    return RunCost(steps, elements)


def _elements(launch: Launch, statement: Statement, sizes: Mapping[str, int]) -> float:
    """The number of elements that a statement computes or moves; for a matmul its
    multiplications."""
    name = getattr(statement, "value", "")
    try:
        count = prod(value(axis.extent, sizes) for axis in launch.value(name).axes)
        if isinstance(statement, Dot):
            tiles = {**dict(launch.tiles), **{n: value(e, sizes) for n, e in launch.whole}}
            count *= prod(tiles.get(index, 1) for index in statement.over)
    except (KeyError, KernelError):  # a value of another launch, or an extent that depends on data
        return 1.0
    return float(count)


def _extent(nest: LoopNest, launch: Launch, index: str, sizes: Mapping[str, int]) -> int:
    """The extent of a loop; 1 if it depends on data."""
    known = facts(nest.variant).ranges
    try:
        return max(1, value(known[index].high, sizes))
    except (KeyError, KernelError):
        return 1
