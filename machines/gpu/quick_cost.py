"""Quick cost of a launch on a GPU, where several thread blocks share a multiprocessor.

Tiles are padded to powers of two. A launch is bound by memory and cache bandwidth, by the bytes in
flight, by the busiest engine of a multiprocessor, or by the latencies of a thread block.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from ir.machine import Machine
from ir.nest.nest import Launch, LoopNest
from ir.sizes import bind
from machines.gpu.counter import ThreadsCounter
from machines.gpu.live import live_bytes, too_deep, warp_bytes
from machines.gpu.shared_memory import shared_bytes

# Round figures of current GPUs, for ranking schedules only.
FULL_THREADS = 256  # of one multiprocessor that keep its vector units busy
MOST_PER_UNIT = 2048  # threads of one multiprocessor
MOST_PROGRAMS = 16  # of one multiprocessor
FEWEST_AT_FULL_USE = 256  # threads that can use all registers of a multiprocessor
USED = 0.5  # share of the registers up to which live values fit, beside temporaries
BESIDE = 1.25  # registers of a thread block over its live values
AT_ONCE = 2  # bandwidth that one multiprocessor can use, over its share of the cache's bandwidth
SPILL = 2  # slowdown for each multiple of the registers that is spilled
REGISTER_BYTES = 4
LOSS = 0.1  # share of overlappable work that does not overlap


@dataclass(frozen=True, slots=True)
class Residence:
    """Residency of a launch: thread blocks on one multiprocessor."""

    threads: int  # of a thread block
    programs: int  # thread blocks at once
    spilled: float  # bytes that do not fit into registers, over those that do


@dataclass(frozen=True, slots=True)
class Moved:
    """Bytes that thread blocks of a launch move."""

    least: float  # by all programs, were each element moved once
    every: float  # by all programs
    loaded: float  # of one program
    under_way: float  # of one program, at once


@dataclass(frozen=True, slots=True)
class LaunchWork:
    """The work of a launch, independent of its number of threads."""

    counter: ThreadsCounter
    machine: Machine
    # Bytes of live registers and of shared memory of one thread block
    taken: tuple[float, int]
    tiles: int  # of the grid
    moved: Moved
    resident: int
    limit: int = 0  # registers of a thread; 0: no limit
    deep: float = 0.0  # how far K of matmuls on the threads exceeds what is fast
    fragments: float = 0.0  # bytes that each warp holds of computed matmul operands

    def us(self, threads: int) -> float:
        """An estimate of the launch's time in microseconds; 0 threads: the usual number."""
        return self.us_of(self.residence(threads))

    def us_of(self, here: Residence) -> float:
        """The same, of a residence."""
        machine, counter = self.machine, self.counter
        rounds = ceil(self.tiles / machine.parallel)
        waves = ceil(self.tiles / (machine.parallel * here.programs))
        beside = min(here.programs, rounds)
        active = beside * here.threads
        full = {"matrix": usual_threads(machine), "operands": 1}
        busy = [
            seconds / min(1.0, active / full.get(engine, FULL_THREADS))
            for engine, seconds in counter.seconds.items()
        ]
        memory = _memory_seconds(self.moved, machine, self.tiles, beside)
        alone = max(busy, default=0.0)
        waiting = 1e-6 * waves * counter.waiting_us
        engines = max(rounds * alone, waiting + waves * beside * alone)
        both = LOSS * (memory + rounds * sum(busy) + waiting / here.programs)
        slower = 1 + SPILL * here.spilled
        return machine.launch_us + 1e6 * slower * (max(memory, engines) + both)

    def residence(self, threads: int) -> Residence:
        """How many thread blocks a multiprocessor holds, and whether registers spill."""
        threads = threads or usual_threads(self.machine)
        room = self.machine.spaces["register"].bytes
        registers, shared = self.taken
        own = room * min(1.0, threads / FEWEST_AT_FULL_USE)
        own = min(own, REGISTER_BYTES * self.limit * threads) if self.limit else own
        warps = threads / max(self.machine.warp, 32)
        spilled = max(
            0.0, self.deep, registers / (USED * own) - 1, self.fragments * warps / (USED * own) - 1
        )
        held = min(BESIDE * registers, own) + 4 * 32 * threads
        programs = min(
            room // int(held),
            self.machine.on_chip_bytes // max(1, shared),
            MOST_PER_UNIT // threads,
            self.resident or MOST_PROGRAMS,
        )
        return Residence(threads, max(1, programs), spilled)


def work(launch: Launch, machine: Machine, sizes: Mapping[str, int]) -> LaunchWork:
    """Counts the work of a launch."""
    counter = ThreadsCounter(launch, machine, sizes)
    counter.block(launch.once, 1.0)
    counter.block(launch.body, 1.0)
    tiles = launch.grid_tiles(sizes)
    taken = live_bytes(launch, machine, sizes), shared_bytes(launch, machine, sizes)
    deep = too_deep(launch, machine, sizes)
    held = warp_bytes(launch, machine, sizes)
    moved = _moved(counter, tiles)
    fields = (launch.resident, launch.registers, deep, held)
    return LaunchWork(counter, machine, taken, tiles, moved, *fields)


def quick_us(nest: LoopNest, machine: Machine, sizes: Mapping[str, int]) -> float:
    """An estimate of a nest's time in microseconds."""
    bound = bind(nest.spec, sizes)
    return sum(
        launch.times(bound) * work(launch, machine, bound).us(launch.threads)
        for launch in nest.launches
    )


def holds(nest: LoopNest, machine: Machine, sizes: Mapping[str, int]) -> bool:
    """Whether no launch of a nest spills registers."""
    bound = bind(nest.spec, sizes)
    return not any(
        work(one, machine, bound).residence(one.threads).spilled for one in nest.launches
    )


def usual_threads(machine: Machine) -> int:
    """Four warps: what a backend chooses where a schedule does not decide."""
    return 4 * max(machine.warp, 32)


def few_threads(machine: Machine) -> int:
    """The fewest threads per block with which the most resident blocks fill all warps of a
    multiprocessor. With half as many, a 3D max pooling took 1.69 ms on an H200, and 1.37 ms with
    these."""
    table = machine.details.get("gpu", {})
    if not table or "programs_of_one_warp" in table:
        return machine.warp
    return machine.warp * int(table["warps_per_unit"] // table["programs_per_unit"])


def _moved(counter: ThreadsCounter, tiles: int) -> Moved:
    return Moved(
        least=sum(min(counter.whole(t), moved * tiles) for t, moved in counter.moved.items()),
        every=sum(counter.moved.values()) * tiles,
        loaded=sum(counter.loaded.values()),
        under_way=max(counter.under_way, 1.0),
    )


def _memory_seconds(moved: Moved, machine: Machine, tiles: int, beside: int) -> float:
    """Seconds of memory traffic: the longest of what DRAM, the cache and the loads in flight allow."""
    cache = machine.spaces.get("cache", machine.spaces["global"]).bytes_per_second
    cache = cache or machine.bandwidth
    units = min(machine.parallel, tiles)
    own = AT_ONCE * cache * units / machine.parallel
    under_way = units * beside * moved.under_way
    slowest = machine.step_us * 1e-6 * moved.loaded * tiles / under_way
    return max(moved.least / machine.bandwidth, moved.every / min(cache, own), slowest)
