"""Counts the work of one thread block for the quick cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil, prod

from ir.estimate.traffic import TYPICAL_SEGMENT, Counter
from ir.machine import Machine
from ir.nest.bulk import later_taps
from ir.nest.neighbours import neighbours
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
from ir.nest.steps import tile_axes
from ir.sizes import power_of_two
from ir.sizes import value as number
from ir.spec import DTYPES, Expr

LEAST_SIDE = 16  # least M, N and K of a matmul tile
WHOLE = ("i8",)  # dtypes that the fit of the cost of operands left out
OPERAND_SIDE = 32  # matmul tiles narrower than twice this are bound by their operands
SYNC_US = 0.05  # synchronisation of a matmul, reduction or scan, when nothing else runs
HIT = 0.3  # latency of a cached load over that of a load from memory


class ThreadsCounter(Counter):
    """Adds up the work of one thread block, with tiles padded to powers of two.

    moved: bytes by tensor; loaded: of these, the bytes that are read. under_way: bytes in flight at
    once. waiting_us: microseconds of latency, if the block ran alone. tables: values that others
    index.
    """

    def __init__(self, launch: Launch, machine: Machine, sizes: Mapping[str, int]):
        super().__init__(launch, machine, sizes)
        self.moved: dict[str, float] = {}
        self.loaded: dict[str, float] = {}
        self.under_way = 0.0
        self.waiting_us = 2 * machine.step_us  # latency of its start and of its stores
        searched = {s.borders.value for s in launch.statements() if isinstance(s, Search)}
        taken = {s.table.value for s in launch.statements() if isinstance(s, Take)}
        # These stay in global memory, or another load already brought them.
        self.tables = searched | taken | later_taps(launch)
        self._sizes: dict[str, Expr | None] = {
            **{g.index: g.size for g in launch.grid},
            **dict(launch.whole),
        }
        self._tiles = dict(launch.tiles)
        self._bytes: dict[str, int] = {}  # of global tensors

    def whole(self, tensor: str) -> float:
        """Bytes of a global tensor."""
        if tensor not in self._bytes:
            one = next(p for p in self.launch.parameters if p.name == tensor)
            self._bytes[tensor] = DTYPES[one.dtype] * prod(
                number(e, self.sizes) for e in one.extent
            )
        return self._bytes[tensor]

    def block(self, block: tuple[Statement, ...], times: float) -> None:
        asked = 0.0
        for s in block:
            match s:
                case Loop():
                    self._sizes.setdefault(s.index, s.high.size)
                    self._loop(s, times * self._iterations(s))
                case Load() if s.value in self.tables:
                    continue
                case Load():
                    asked += self._move(s, times) * self.values[s.value].stages
                case Store():
                    self._move(s, times)
                case Dot():
                    self._product(s, times)
                case Map():
                    self._map(s, times)
                case Search() | Take():
                    self._probe(s, times)
                case Reduction() | Scan():
                    axes = tile_axes(s.source, self.values)
                    count = prod(self._extent(i) for i in axes)
                    weight = 4 if isinstance(s, Scan) else 1
                    self._busy("vector", times * weight * count / self._rate("vector", "f32"))
        self.under_way = max(self.under_way, asked)

    def _loop(self, loop: Loop, times: float) -> None:
        """Counts a loop. A step waits for its load unless the load was prefetched during the steps
        before. Each matmul, reduction and scan also synchronises the threads."""
        before = max(self.seconds.values(), default=0.0)
        self.block(loop.body, times)
        step_us = 1e6 * (max(self.seconds.values(), default=0.0) - before) / times
        stages = [self.values[s.value].stages for s in loop.body if isinstance(s, Load)]
        ahead = step_us * (min(stages, default=1) - 1)
        load = max(0.0, HIT * self.machine.step_us - ahead) if stages else 0.0
        sync = SYNC_US * sum(isinstance(s, Dot | Reduction | Scan) for s in loop.body)
        self.waiting_us += times * (load + sync)

    def _move(self, s: Load | Store, times: float) -> float:
        """Counts a load or a store of `times` repetitions; returns the bytes of one."""
        moved = self._moved(s)
        self.moved[s.tensor] = self.moved.get(s.tensor, 0.0) + times * moved
        if isinstance(s, Load):
            self.loaded[s.tensor] = self.loaded.get(s.tensor, 0.0) + times * moved
        if not s.bulk:
            count = self._elements(s.value) * DTYPES[self.values[s.value].dtype] / 4
            self._busy("vector", times * count / self._rate("vector", "f32"))
        return moved

    def _product(self, s: Dot, times: float) -> None:
        a, b = tile_axes(s.a, self.values), tile_axes(s.b, self.values)
        out = self.values[s.value].names
        rows = self._side(i for i in out if i in a and i not in b)
        columns = self._side(i for i in out if i in b and i not in a)
        depth = self._side(s.over)
        batch = prod(self._extent(i) for i in out if i in a and i in b)
        dtype = self.values[s.a.value].dtype
        rate = self._rate("matrix", dtype)
        self._busy("matrix", times * 2 * rows * columns * depth * batch / rate)
        width = DTYPES[dtype]
        operands = OPERAND_SIDE * width * (rows + columns) * depth * batch
        peaks = self.machine.units["matrix"].flops
        widest = max(v for d, v in peaks.items() if d not in WHOLE) / self.machine.parallel
        self._busy("operands", times * operands / widest)

    def _probe(self, s: Search | Take, times: float) -> None:
        """Counts a search or a gather: each entry looks up a table, a search several times."""
        steps = number(s.count, self.sizes).bit_length() if isinstance(s, Search) else 1
        count = steps * self._elements(s.value)
        self._busy("vector", times * 4 * count / self._rate("vector", "f32"))
        self.waiting_us += times * steps * HIT * self.machine.step_us

    def _side(self, indices: Iterable[str]) -> int:
        return max(LEAST_SIDE, prod(self._extent(i) for i in indices))

    def _rate(self, unit: str, dtype: str) -> float:
        """Operations per second of one multiprocessor. A peak counts two for each multiply-add."""
        rate = super()._rate(unit, dtype)
        return rate / 2 if unit == "vector" else rate

    def elements(self, value: str) -> int:
        """Elements of a value, padded."""
        return self._elements(value)

    def _elements(self, value: str) -> int:
        extents = (number(a.extent, self.sizes) for a in self.values[value].axes)
        return prod(power_of_two(e) for e in extents)

    def _extent(self, index: str) -> int:
        return power_of_two(super()._extent(index))

    def _moved(self, s: Load | Store) -> float:
        """Bytes that a region moves, in whole sectors. Runs with gaps smaller than a sector count as one run."""
        value = self.values[s.value]
        width = DTYPES[value.dtype]
        shape = self.shapes[s.tensor]
        run, stride, runs, joined = 1.0, 1, 1.0, True
        for one, size in zip(reversed(s.region), reversed(shape), strict=True):
            extent = self._slice(one, value)
            gap = width * (stride * one.step - run)
            joined = joined and one.rows is None and gap < self.machine.sector
            if joined:
                run += (extent - 1) * stride * one.step
            else:
                runs *= extent
            stride *= number(size, self.sizes)
        moved = runs * self.machine.sector * ceil(width * run / self.machine.sector)
        if all(one.rows is None for one in s.region):
            return moved
        # Several dimensions may take their positions along one index, which is then read element by element.
        extents = {i: float(self._extent(i)) for one in s.region for i, _ in one.terms}
        sizes = tuple(number(size, self.sizes) for size in shape)
        together = neighbours(self.launch, s, sizes, extents, max(1, self.machine.sector // width))
        return min(moved, self._elements(s.value) * self.machine.sector / together)

    def _slice(self, one: Slice, value: Value) -> float:
        """Elements along one dimension that are in bounds, averaged over tiles."""
        if one.axis is None:
            return 1
        if one.whole or not one.terms:
            return super()._slice(one, value)
        return prod(self._inside(i) for i, _ in one.terms)

    def _inside(self, index: str) -> float:
        tile, size = self._tiles.get(index, 0), self._sizes.get(index)
        if isinstance(size, Expr) and not self._moving(size):
            count = number(size, self.sizes)
            return count / ceil(count / (tile or count))
        return min(tile, TYPICAL_SEGMENT)
