"""Kernel features: figures of a loop nest that have the same meaning on all machines.

They describe memory accesses (`coalesced`, `reused`, `ahead`), passes over the data (`passes`,
`carried`), the unit (`matrix_share`), synchronisation (`barriers`, `collectives`, `atomics`) and
the estimated bottleneck (`busy_*`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil, prod

from ir.estimate.traffic import Counter, prefetched
from ir.machine import Machine
from ir.nest.nest import (
    Dot,
    Launch,
    Load,
    Loop,
    LoopNest,
    Map,
    Reduction,
    Scan,
    Statement,
    Store,
    Tile,
)
from ir.nest.steps import steps, tile_axes
from ir.sizes import bind
from ir.sizes import value as number
from ir.spec import DTYPES

BUSY = ("memory", "vector", "matrix")  # each with a figure `busy_<name>`, a share of the time
VECTOR = ("vector", "special", "reduction")  # engines that count as one


def kernel_features(nest: LoopNest, machine: Machine, sizes: Mapping[str, int]) -> dict[str, float]:
    """The features of a nest at given sizes."""
    bound = bind(nest.spec, sizes)
    walks = [_Walk(launch, machine, bound) for launch in nest.launches]
    total = {
        name: sum(w.times * w.found.get(name, 0.0) for w in walks)
        for name in ("asked", "moved", "loaded", "reused", "ahead", "matrix", "vector")
    }
    operations = total["matrix"] + total["vector"]
    return {
        # Bytes requested over bytes moved; memory moves whole sectors.
        "coalesced": _share(total["asked"], total["moved"]),
        # Share of the loaded bytes that are read more than once.
        "reused": _share(total["reused"], total["loaded"]),
        # Share of the loaded bytes that are prefetched.
        "ahead": _share(total["ahead"], total["loaded"]),
        # Most passes over one tensor; each store of it and each loop that loads it is one.
        "passes": float(_passes(nest)),
        # Loop-carried reductions.
        "carried": float(sum(_carried(launch) for launch in nest.launches)),
        "operations": operations,
        "matrix_share": _share(total["matrix"], operations),
        # Loads that thread blocks share, and exchanges between threads through shared memory.
        "barriers": float(sum(_barriers(launch, machine) for launch in nest.launches)),
        # Reductions and scans within a thread block.
        "collectives": float(sum(w.met for w in walks)),
        # Reductions into global memory.
        "atomics": float(sum(s.reduction != "" for s in _all(nest) if isinstance(s, Store))),
        # Shares of the estimated time; the rest is launches and latency.
        **_busy(walks, machine),
    }


class _Walk(Counter):
    """A counter that also classifies the bytes and operations of a launch."""

    def __init__(self, launch: Launch, machine: Machine, sizes: Mapping[str, int]):
        super().__init__(launch, machine, sizes)
        self.times = launch.times(sizes)
        self.tiles = launch.grid_tiles(sizes)
        own = machine.model.block_per_tile and not launch.resident
        self.kept = frozenset(_reused(launch, 0 if own else -1))  # loaded values that are reused
        # Totals of the launch: bytes `asked` (requested) and `moved`; bytes `loaded`, and of these
        # `reused` and `ahead` (prefetched); operations of the `matrix` and the `vector` units.
        self.found: dict[str, float] = {}
        self.met = 0  # reductions and scans over more than one element
        self.block(launch.body, self.tiles)
        self.block(launch.once, self.tiles if own else min(self.tiles, machine.parallel))

    def block(self, block: tuple[Statement, ...], times: float) -> None:
        for s in block:
            match s:
                case Load() | Store():
                    self._bytes(s, times)
                case Dot():
                    self._add("matrix", times * self._operations(s))
                case Map():
                    count = len(steps(s, self.values)) * self._elements(s.value)
                    self._add("vector", times * count)
                case Reduction() | Scan():
                    axes = tile_axes(s.source, self.values)
                    self._add("vector", times * prod(self._extent(i) for i in axes))
                    along = s.over if isinstance(s, Reduction) else (s.along,)
                    self.met += prod(self._extent(i) for i in along) > 1
        super().block(block, times)

    def us(self, engine: str) -> float:
        """Busy microseconds of an engine of one SM in one launch."""
        return 1e6 * self.seconds.get(engine, 0.0) / min(self.tiles, self.machine.parallel)

    def memory_us(self) -> float:
        """Microseconds of memory or of its cache in one launch, whichever is longer."""
        cache = self.machine.spaces.get("cache", self.machine.spaces["global"])
        whole = sum(
            DTYPES[p.dtype] * prod(number(e, self.sizes) for e in p.extent)
            for p in self.launch.parameters
        )
        rate = cache.bytes_per_second or self.machine.bandwidth
        return 1e6 * max(min(whole, self.bytes) / self.machine.bandwidth, self.bytes / rate)

    def _bytes(self, s: Load | Store, times: float) -> None:
        value = self.values[s.value]
        moved = times * self._moved(s)
        self._add("asked", times * min(self._moved(s), self._asked(s)))
        self._add("moved", moved)
        if isinstance(s, Load):
            self._add("loaded", moved)
            self._add("reused", moved * (s.value in self.kept))
            self._add("ahead", moved * prefetched(value))

    def _asked(self, s: Load | Store) -> float:
        value = self.values[s.value]
        return DTYPES[value.dtype] * self._elements(s.value)

    def _operations(self, s: Dot) -> float:
        axes = dict.fromkeys((*self.values[s.value].names, *s.over))
        return 2.0 * prod(self._extent(i) for i in axes)

    def _add(self, name: str, count: float) -> None:
        self.found[name] = self.found.get(name, 0.0) + count


def _busy(walks: list[_Walk], machine: Machine) -> dict[str, float]:
    """The shares of the estimated time in which memory and each kind of unit are busy."""
    parts = dict.fromkeys(BUSY, 0.0)
    total = 0.0
    for walk in walks:
        rounds = ceil(walk.tiles / machine.parallel)
        here = {
            "memory": walk.memory_us(),
            "vector": max(walk.us(e) for e in VECTOR),
            "matrix": walk.us("matrix"),
        }
        for name, us in here.items():
            parts[name] += walk.times * us
        waiting = machine.launch_us + machine.step_us * (1 + rounds)
        total += walk.times * (waiting + max(here.values()))
    return {f"busy_{name}": _share(us, total) for name, us in parts.items()}


def _reused(launch: Launch, once: int) -> Iterator[str]:
    """Loaded values that are read more than once.

    They are read by two statements, in a loop inside the one that loads them, by several thread
    blocks, or as an operand of a matmul.

    once: the loop depth of the prologue; -1 if a thread block processes several tiles.
    """
    deep = [*_within(launch.once, once), *_within(launch.body, 0)]
    outside = {s.value: depth for depth, s in deep if isinstance(s, Load)}
    readers: dict[str, int] = {}
    for depth, s in deep:
        if isinstance(s, Load) and s.shared:
            yield s.value
        for name in _reads(s):
            readers[name] = readers.get(name, 0) + 1
            if name in outside and (depth > outside[name] or isinstance(s, Dot)):
                yield name
    yield from (name for name in outside if readers.get(name, 0) > 1)


def _reads(s: Statement) -> set[str]:
    """The values that a statement reads."""
    match s:
        case Map():
            return {n.value for n in s.expression.walk() if isinstance(n, Tile)} - {s.value}
        case Dot():
            return {t.value for t in (s.a, s.b, *s.scales)}
        case Reduction() | Scan():
            return {s.source.value}
        case Store():
            return {s.value}
    tiles = [getattr(s, name, None) for name in ("source", "borders", "table", "at")]
    return {t.value for t in tiles if isinstance(t, Tile)}


def _within(block: tuple[Statement, ...], depth: int) -> Iterator[tuple[int, Statement]]:
    """Every statement with its loop depth, counted from `depth`."""
    for s in block:
        yield depth, s
        if isinstance(s, Loop):
            yield from _within(s.body, depth + 1)


def _passes(nest: LoopNest) -> int:
    """The most passes over one global tensor."""
    places: dict[str, int] = {}
    for launch in nest.launches:
        for block in (launch.once, launch.body, *_bodies(launch)):
            here = {s.tensor for s in block if isinstance(s, Load)}
            stored = {s.tensor for s in block if isinstance(s, Store)}
            for tensor in (*here, *stored):
                places[tensor] = places.get(tensor, 0) + 1
    return max(places.values(), default=1)


def _bodies(launch: Launch) -> Iterator[tuple[Statement, ...]]:
    yield from (s.body for s in launch.statements() if isinstance(s, Loop))


def _carried(launch: Launch) -> int:
    """Loop-carried reductions, scans and matmuls of a launch."""
    return sum(
        isinstance(s, Scan) or (isinstance(s, Reduction | Dot) and s.accumulate)
        for body in _bodies(launch)
        for s in body
    )


def _barriers(launch: Launch, machine: Machine) -> int:
    """Synchronisations with other thread blocks or between threads."""
    shared = sum(isinstance(s, Load) and s.shared is not None for s in launch.statements())
    return shared + machine.model.exchanges(launch)


def _all(nest: LoopNest) -> Iterator[Statement]:
    for launch in nest.launches:
        yield from launch.statements()


def _share(part: float, whole: float) -> float:
    return min(1.0, part / whole) if whole > 0 else 0.0
