"""Estimate of launches whose programs have lanes: several of them share a tile processor.

Tiles are padded to powers of two. What bounds a launch: memory and cache bandwidth, bytes that
are under way at once, the busiest engine of a tile processor, and what a program waits for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil, prod

from ir.footprint import register_bytes, scratch_bytes
from ir.machine import Machine
from ir.nest import (
    Dot,
    Fold,
    Launch,
    Load,
    Loop,
    LoopNest,
    Map,
    Scan,
    Search,
    Slice,
    Statement,
    Store,
    Take,
    Value,
)
from ir.sizes import bind
from ir.sizes import value as number
from ir.spec import DTYPES, Expr
from ir.steps import tile_axes
from ir.traffic import TYPICAL_SEGMENT, Counter, power_of_two

# Round figures of current machines with registers, to rank schedules by.
FULL_LANES = 256  # of one tile processor that keep its vector units busy
MOST_PER_UNIT = 2048  # lanes of one tile processor
MOST_PROGRAMS = 16  # of one tile processor
FEWEST_AT_FULL_USE = 256  # lanes that can take all registers of a tile processor
USED = 0.8  # share of a lane's registers that is not addresses, masks and numbers
BESIDE = 1.4  # registers that a program takes, in terms of what it surely holds
LEAST_SIDE = 16  # of a product's operands
OPERAND_SIDE = 32  # products narrower than twice this wait for their operands
SYNC_US = 0.05  # a product or a fold across lanes, when nothing else runs
AT_ONCE = 2  # of its share of the cache's bandwidth, what one tile processor can use
HIT = 0.3  # what a load from the cache waits, in terms of one from memory
SPILL = 4  # what each part of the registers that is too much adds to the time
LOSS = 0.1  # share of what should run side by side that does not


@dataclass(frozen=True, slots=True)
class Residence:
    """How programs of a launch share a tile processor. lanes: of a program.  programs: at once.
    spilled: bytes that registers should hold and do not, over what they hold."""

    lanes: int
    programs: int
    spilled: float


@dataclass(frozen=True, slots=True)
class Work:
    """What a launch does, whatever its lanes. taken: bytes of registers and of scratch that a
    program takes.  tiles: of the grid."""

    counter: LanesCounter
    machine: Machine
    taken: tuple[float, int]
    tiles: int
    resident: int

    def us(self, lanes: int) -> float:
        """A first estimate of the launch's time in microseconds, 0 lanes: the usual number."""
        machine, counter = self.machine, self.counter
        here = self.residence(lanes)
        rounds = ceil(self.tiles / machine.parallel)
        waves = ceil(self.tiles / (machine.parallel * here.programs))
        beside = min(here.programs, rounds)
        active = beside * here.lanes
        full = {"matrix": usual_lanes(machine), "operands": 1}
        busy = [
            seconds / min(1.0, active / full.get(engine, FULL_LANES))
            for engine, seconds in counter.seconds.items()
        ]
        memory = _memory_seconds(counter, machine, self.tiles, beside)
        alone = max(busy, default=0.0)
        waiting = 1e-6 * waves * counter.waiting_us
        engines = max(rounds * alone, waiting + waves * beside * alone)
        both = LOSS * (memory + rounds * sum(busy) + waiting / here.programs)
        slower = 1 + SPILL * here.spilled
        return machine.launch_us + 1e6 * slower * (max(memory, engines) + both)

    def residence(self, lanes: int) -> Residence:
        """How many programs a tile processor holds, and how far registers suffice."""
        lanes = lanes or usual_lanes(self.machine)
        room = self.machine.spaces["register"].bytes
        registers, scratch = self.taken
        own = room * min(1.0, lanes / FEWEST_AT_FULL_USE)
        spilled = max(0.0, registers / (USED * own) - 1)
        held = min(registers, own) + 4 * 32 * lanes
        programs = min(
            room // int(held),
            self.machine.scratch_bytes // max(1, scratch),
            MOST_PER_UNIT // lanes,
            self.resident or MOST_PROGRAMS,
        )
        return Residence(lanes, max(1, programs), spilled)


def work(launch: Launch, machine: Machine, sizes: Mapping[str, int]) -> Work:
    """Counts what a launch does."""
    counter = LanesCounter(launch, machine, sizes)
    counter.block(launch.once, 1.0)
    counter.block(launch.body, 1.0)
    tiles = prod(ceil(number(g.size, sizes) / g.tile) for g in launch.grid)
    registers = BESIDE * register_bytes(launch, machine, sizes)
    scratch = scratch_bytes(launch, machine, sizes)
    return Work(counter, machine, (registers, scratch), tiles, launch.resident)


def launch_us(launch: Launch, machine: Machine, sizes: Mapping[str, int]) -> float:
    """A first estimate of a launch's time in microseconds."""
    return work(launch, machine, sizes).us(launch.lanes)


def roomy(nest: LoopNest, machine: Machine, sizes: Mapping[str, int]) -> bool:
    """Whether the registers of a program hold what it computes with, where there are any."""
    if not machine.has_registers:
        return True
    bound = bind(nest.spec, sizes)
    return not any(work(one, machine, bound).residence(one.lanes).spilled for one in nest.launches)


def usual_lanes(machine: Machine) -> int:
    """Four waves: a backend's choice, where a schedule makes none."""
    return 4 * max(machine.wave, 32)


def _memory_seconds(counter: LanesCounter, machine: Machine, tiles: int, beside: int) -> float:
    """The longest of what memory, the cache and the loads that are under way allow."""
    cache = machine.spaces.get("cache", machine.spaces["global"]).bytes_per_second
    cache = cache or machine.bandwidth
    compulsory = sum(
        min(counter.whole(tensor), moved * tiles) for tensor, moved in counter.moved.items()
    )
    moved = sum(counter.moved.values()) * tiles
    units = min(machine.parallel, tiles)
    own = AT_ONCE * cache * units / machine.parallel
    under_way = units * beside * max(counter.under_way, 1.0)
    slowest = machine.step_us * 1e-6 * sum(counter.loaded.values()) * tiles / under_way
    return max(compulsory / machine.bandwidth, moved / min(cache, own), slowest)


class LanesCounter(Counter):
    """Adds up what one program does. moved: bytes by tensor; loaded: of these, those read.
    under_way: bytes that are asked for at once.  waiting_us: what it waits, were it alone.
    tables: values that numbers are looked up in."""

    def __init__(self, launch: Launch, machine: Machine, sizes: Mapping[str, int]):
        super().__init__(launch, machine, sizes)
        self.moved: dict[str, float] = {}
        self.loaded: dict[str, float] = {}
        self.under_way = 0.0
        self.waiting_us = 2 * machine.step_us  # what it starts with, and its stores
        searched = {s.borders.value for s in launch.statements() if isinstance(s, Search)}
        taken = {s.table.value for s in launch.statements() if isinstance(s, Take)}
        self.tables = searched | taken  # they stay in global memory
        self._sizes = {g.index: g.size for g in launch.grid} | dict(launch.whole)
        self._tiles = dict(launch.tiles)

    def whole(self, tensor: str) -> float:
        """Bytes of a global tensor."""
        one = next(p for p in self.launch.parameters if p.name == tensor)
        return DTYPES[one.dtype] * prod(number(e, self.sizes) for e in one.shape)

    def block(self, block: tuple[Statement, ...], times: float) -> None:
        asked = 0.0
        for s in block:
            match s:
                case Loop():
                    self._sizes.setdefault(s.index, s.high.size)
                    self._loop(s, times * self._trips(s))
                case Load() if s.value in self.tables:
                    continue
                case Load():
                    asked += self._move(s, times) * self.values[s.value].depth
                case Store():
                    self._move(s, times)
                case Dot():
                    self._product(s, times)
                case Map():
                    self._map(s, times)
                case Search() | Take():
                    self._probe(s, times)
                case Fold() | Scan():
                    axes = tile_axes(s.source, self.values)
                    count = prod(self._extent(i) for i in axes)
                    weight = 4 if isinstance(s, Scan) else 1
                    self._busy("vector", times * weight * count / self._rate("vector", "f32"))
        self.under_way = max(self.under_way, asked)

    def _loop(self, loop: Loop, times: float) -> None:
        """Counts a loop. A step waits for its load, unless it was under way while the steps
        before it were done, and its lanes wait for each other."""
        before = max(self.seconds.values(), default=0.0)
        self.block(loop.body, times)
        step_us = 1e6 * (max(self.seconds.values(), default=0.0) - before) / times
        depths = [self.values[s.value].depth for s in loop.body if isinstance(s, Load)]
        ahead = step_us * (min(depths, default=1) - 1)
        load = max(0.0, HIT * self.machine.step_us - ahead) if depths else 0.0
        sync = SYNC_US * sum(isinstance(s, Dot | Fold | Scan) for s in loop.body)
        self.waiting_us += times * (load + sync)

    def _move(self, s: Load | Store, times: float) -> float:
        """Counts a load or a store; the bytes of one."""
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
        widest = max(self.machine.units["matrix"].flops.values()) / self.machine.parallel
        self._busy("operands", times * operands / widest)

    def _probe(self, s: Search | Take, times: float) -> None:
        """Each entry looks a number up in a table: a search does that again and again."""
        steps = number(s.count, self.sizes).bit_length() if isinstance(s, Search) else 1
        count = steps * self._elements(s.value)
        self._busy("vector", times * 4 * count / self._rate("vector", "f32"))
        self.waiting_us += times * steps * HIT * self.machine.step_us

    def _side(self, indices: Iterable[str]) -> int:
        return max(LEAST_SIDE, prod(self._extent(i) for i in indices))

    def _rate(self, unit: str, dtype: str) -> float:
        """Operations a second of one tile processor; a peak counts two for each multiply-add."""
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

    def _slice(self, one: Slice, value: Value) -> float:
        """Elements along one dimension that lie inside the tensor, on average over tiles."""
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
