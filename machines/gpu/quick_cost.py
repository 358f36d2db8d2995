"""Quick cost of a launch on a GPU: several blocks share a multiprocessor.

Tiles are padded to powers of two. What bounds a launch: memory and cache bandwidth, bytes that
are under way at once, the busiest engine of a tile processor, and what a program waits for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, prod

from ir.machine import Machine
from ir.nest.nest import Launch, LoopNest
from ir.sizes import bind
from ir.sizes import value as number
from machines.gpu.counter import LanesCounter
from machines.gpu.live import live_bytes, too_deep
from machines.gpu.shared_memory import scratch_bytes

# Round figures of current machines with registers, to rank schedules by.
FULL_LANES = 256  # of one tile processor that keep its vector units busy
MOST_PER_UNIT = 2048  # lanes of one tile processor
MOST_PROGRAMS = 16  # of one tile processor
FEWEST_AT_FULL_USE = 256  # lanes that can take all registers of a tile processor
USED = 0.5  # share of the registers up to which what is live fits, with all that is beside it
BESIDE = 1.25  # registers that a program takes, in terms of what is live
AT_ONCE = 2  # of its share of the cache's bandwidth, what one tile processor can use
SPILL = 2  # what each part of the registers that is too much adds to the time
LOSS = 0.1  # share of what should run side by side that does not


@dataclass(frozen=True, slots=True)
class Residence:
    """How programs of a launch share a tile processor. lanes: of a program.  programs: at once.
    spilled: by how much registers do not suffice, over what they hold."""

    lanes: int
    programs: int
    spilled: float


@dataclass(frozen=True, slots=True)
class Work:
    """What a launch does, whatever its lanes. taken: bytes of registers that are live at once, and
    of scratch, of one program.  tiles: of the grid.  deep: by how much products of its lanes are
    too deep."""

    counter: LanesCounter
    machine: Machine
    taken: tuple[float, int]
    tiles: int
    resident: int
    deep: float = 0.0

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
        spilled = max(0.0, self.deep, registers / (USED * own) - 1)
        held = min(BESIDE * registers, own) + 4 * 32 * lanes
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
    taken = live_bytes(launch, machine, sizes), scratch_bytes(launch, machine, sizes)
    deep = too_deep(launch, machine, sizes)
    return Work(counter, machine, taken, tiles, launch.resident, deep)


def quick_us(nest: LoopNest, machine: Machine, sizes: Mapping[str, int]) -> float:
    """A first estimate of a nest's time in microseconds."""
    bound = bind(nest.spec, sizes)
    return sum(
        launch.times(bound) * work(launch, machine, bound).us(launch.lanes)
        for launch in nest.launches
    )


def holds(nest: LoopNest, machine: Machine, sizes: Mapping[str, int]) -> bool:
    """Whether the registers of a block hold what it computes with."""
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
