"""Traffic: counts the bytes and the work of a launch over its statements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil, prod

from ir.functions import POINTWISE
from ir.machine import Machine
from ir.nest.nest import (
    Dot,
    Launch,
    Load,
    Loop,
    Map,
    Reduction,
    Scan,
    Search,
    Slice,
    Statement,
    Store,
    Take,
    Value,
)
from ir.nest.steps import steps, tile_axes
from ir.sizes import value as number
from ir.spec import DTYPES, Apply, Expr, Index, Number

TYPICAL_SEGMENT = 16  # assumed length of a jagged range, which depends on data


@dataclass(frozen=True, slots=True)
class Traffic:
    """The work of a whole launch."""

    tiles: int  # of the grid
    moved: int  # bytes over the memory system
    compulsory: int  # bytes of its tensors, each once
    seconds: Mapping[str, float]  # by engine: the busy time of one SM for one tile
    chain: float  # steps of one tile that wait for a load


def traffic(launch: Launch, machine: Machine, sizes: Mapping[str, int]) -> Traffic:
    """The work of a launch, from its statements and how often each runs."""
    counter = Counter(launch, machine, sizes)
    tiles = launch.grid_tiles(sizes)
    counter.block(launch.body, 1)
    moved = counter.bytes * tiles
    compulsory = sum(
        DTYPES[p.dtype] * prod(number(e, sizes) for e in p.extent) for p in launch.parameters
    )
    # The prologue runs once per thread block, not once per tile; `moved` leaves it out.
    counter.block(launch.once, min(tiles, machine.parallel) / tiles)
    return Traffic(
        tiles, int(moved), int(min(compulsory, moved) or moved), counter.seconds, counter.chain
    )


class Counter:
    """Adds up bytes and engine time over the statements of one grid tile."""

    def __init__(self, launch: Launch, machine: Machine, sizes: Mapping[str, int]):
        self.values: dict[str, Value] = {v.name: v for v in launch.values}
        self.launch = launch
        self.machine = machine
        self.sizes = sizes
        self.bytes = 0.0
        self.chain = 1.0
        self.seconds: dict[str, float] = {}
        self.tiles_of = dict(launch.tiles)
        self.whole_of = dict(launch.whole)
        self.shapes = {p.name: p.shape for p in launch.parameters}

    def block(self, block: tuple[Statement, ...], times: float) -> None:
        """Adds the cost of a block that runs `times` times."""
        for s in block:
            match s:
                case Loop():
                    iterations = self._iterations(s)
                    before = self.chain
                    self.block(s.body, times * iterations)
                    # A load that is not prefetched stalls every iteration of its loop. This count
                    # replaces what inner loops added.
                    if any(
                        isinstance(x, Load) and not prefetched(self.values[x.value]) for x in s.body
                    ):
                        self.chain = before + times * iterations
                case Load() | Store():
                    moved = self._moved(s)
                    alike = self._alike(s) if isinstance(s, Load) else 1
                    self.bytes += times * moved / alike
                    # A tile that other tiles load too mostly comes from the cache. One SM can draw
                    # about twice its share of the cache's bandwidth.
                    cache = self.machine.spaces.get("cache", self.machine.spaces["global"])
                    rate = 2 * cache.bytes_per_second / self.machine.parallel
                    self._busy("memory", times * moved / rate)
                case Dot():
                    self._busy("matrix", times * self._dot(s))
                case Map():
                    self._map(s, times)
                case Search():
                    # Binary search: one comparison per bit of the number of borders.
                    depth = ceil(number(s.count, self.sizes).bit_length())
                    count = depth * self._elements(s.value)
                    self._busy("vector", times * count / self._rate("vector", "f32"))
                case Take():
                    count = self._elements(s.value)
                    self._busy("vector", times * count / self._rate("vector", "f32"))
                case Reduction() | Scan():
                    count = prod(self._extent(i) for i in tile_axes(s.source, self.values))
                    self._busy("reduction", times * count / self._rate("vector", "f32"))

    def _moved(self, s: Load | Store) -> float:
        """Bytes that a region moves; a contiguous run occupies whole sectors."""
        value = self.values[s.value]
        width = DTYPES[value.dtype]
        shape = self.shapes[s.tensor]
        # Positions over several axes are read element by element, one sector each.
        if any(one.rows and len(one.terms) > 1 for one in s.region):
            return self._elements(s.value) * self.machine.sector
        extents = [self._slice(one, value) for one in s.region]
        # A run grows over the innermost dimensions as long as each is covered whole.
        run = 1.0
        for one, size, extent in zip(
            reversed(s.region), reversed(shape), reversed(extents), strict=True
        ):
            run *= extent
            if one.rows or one.step > 1 or extent < number(size, self.sizes):
                break
        if s.region and (s.region[-1].step > 1 or s.region[-1].rows):
            run = 1.0
        runs = prod(extents) / run
        return runs * _up(width * run, self.machine.sector)

    def _slice(self, one: Slice, value: Value) -> float:
        """Elements along one dimension of a region."""
        if one.axis is None:
            return 1
        return number(value.extent(one.axis), self.sizes)

    def _alike(self, load: Load) -> int:
        """The number of concurrent tiles that share a load."""
        if load.shared is None:
            return 1
        axis = self.launch.grid[-1]
        return min(self.machine.parallel, ceil(number(axis.size, self.sizes) / axis.tile))

    def _iterations(self, loop: Loop) -> float:
        """The iterations of a loop; those of the middle tile if its bounds depend on the tile."""
        if loop.high.size is None:
            return max(1.0, TYPICAL_SEGMENT / loop.tile)
        high = number(self._middle(loop.high.size), self.sizes)
        low = number(self._middle(loop.low.size), self.sizes) if loop.low.size else 0
        return max(1, ceil((high - low) / loop.tile))

    def _moving(self, bound: Expr) -> bool:
        """Whether a bound depends on the tile of another index."""
        return any(isinstance(n, Index) for n in bound.walk())

    def _middle(self, bound: Expr) -> Expr:
        """The bound for the middle tile of the indices that it depends on."""
        if isinstance(bound, Index):
            sizes = {g.index: g.size for g in self.launch.grid} | dict(self.launch.whole)
            half = number(sizes[bound.name], self.sizes) // 2 if bound.name in sizes else 0
            return Number(half)
        if isinstance(bound, Apply):
            return replace(bound, args=tuple(self._middle(a) for a in bound.args))
        return bound

    def _dot(self, s: Dot) -> float:
        """Seconds of one matmul on one SM; M and N are padded to the steps of the matrix unit."""
        a, b = tile_axes(s.a, self.values), tile_axes(s.b, self.values)
        step = (*self.machine.units["matrix"].step, 1, 1, 1)
        out = self.values[s.value].names
        rows = prod([self._extent(i) for i in out if i in a and i not in b])
        columns = prod([self._extent(i) for i in out if i in b and i not in a])
        batch = prod([self._extent(i) for i in out if i in a and i in b])
        depth = prod([self._extent(i) for i in s.over])
        padded = _up(rows, step[0]) * _up(columns, step[1]) * depth * batch
        return 2 * padded / self._rate("matrix", self.values[s.a.value].dtype)

    def _map(self, s: Map, times: float) -> None:
        """Adds each operation of an expression on the unit that computes it."""
        count = self._elements(s.value)
        for step in steps(s, self.values):
            known = POINTWISE.get(step.function)
            unit = known.unit if known else "vector"
            unit = unit if unit in self.machine.units else "vector"
            self._busy(unit, times * count / self._rate(unit, "f32"))

    def _rate(self, unit: str, dtype: str) -> float:
        """Operations a second of a unit of one SM."""
        return self.machine.peak(unit, dtype) / self.machine.parallel

    def _busy(self, engine: str, seconds: float) -> None:
        self.seconds[engine] = self.seconds.get(engine, 0.0) + seconds

    def _elements(self, value: str) -> int:
        return prod([number(a.extent, self.sizes) for a in self.values[value].axes])

    def _extent(self, index: str) -> int:
        if index in self.tiles_of:
            return self.tiles_of[index]
        return number(self.whole_of[index], self.sizes)


def prefetched(value: Value) -> bool:
    """Whether the next tile of a value can be in flight while one is used."""
    return value.stages > 1 or value.slots is not None


def _up(count: float, step: int) -> int:
    return ceil(count / step) * step
