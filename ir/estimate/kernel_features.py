"""Character: facts of a loop nest by which kernels are told apart, in words for all machines.

They say how a kernel goes about its memory (`coalesced`, `reused`, `ahead`), how often over its
data (`passes`, `carried`), on which unit (`matrix_share`), where programs or their threads meet
(`barriers`, `collectives`, `atomics`), and what bounds it by a first estimate (`busy_*`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil, prod

from ir.estimate.traffic import Counter
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
    """The facts of a nest at sizes.

    coalesced: bytes asked for, of those that are moved, runs being whole sectors.  reused,
    ahead: the share of the bytes loaded that are read more than once, and that are loaded while
    earlier ones are worked on.  passes: the most places from which one tensor is gone through,
    as each store and each loop that loads it is one.  carried: reductions that go on from tile to
    tile.  operations: all of them; matrix_share: those of the matrix unit.  barriers: loads that
    programs share, and what threads hand to each other through scratch; collectives: reductions within
    a program; atomics: reductions into global memory.  busy_memory, busy_vector, busy_matrix: the
    share of the estimated time; what is left is launches and waiting.
    """
    bound = bind(nest.spec, sizes)
    walks = [_Walk(launch, machine, bound) for launch in nest.launches]
    total = {
        name: sum(w.times * w.found.get(name, 0.0) for w in walks)
        for name in ("asked", "moved", "loaded", "reused", "ahead", "matrix", "vector")
    }
    operations = total["matrix"] + total["vector"]
    return {
        "coalesced": _share(total["asked"], total["moved"]),
        "reused": _share(total["reused"], total["loaded"]),
        "ahead": _share(total["ahead"], total["loaded"]),
        "passes": float(_passes(nest)),
        "carried": float(sum(_carried(launch) for launch in nest.launches)),
        "operations": operations,
        "matrix_share": _share(total["matrix"], operations),
        "barriers": float(sum(_barriers(launch, machine) for launch in nest.launches)),
        "collectives": float(sum(w.met for w in walks)),
        "atomics": float(sum(s.reduction != "" for s in _all(nest) if isinstance(s, Store))),
        **_busy(walks, machine),
    }


class _Walk(Counter):
    """Adds up, beside a launch's time by engine, what its bytes and operations are for.

    met: reductions and scans over more than one element.  found: of all its programs: bytes `asked`
    for and `moved`, bytes `loaded` and of these those `reused` and loaded `ahead`, operations of
    the `matrix` and the `vector` units.
    """

    def __init__(self, launch: Launch, machine: Machine, sizes: Mapping[str, int]):
        super().__init__(launch, machine, sizes)
        self.times = launch.times(sizes)
        self.tiles = prod(ceil(number(g.size, sizes) / g.tile) for g in launch.grid)
        own = machine.model.block_per_tile and not launch.resident
        self.kept = frozenset(_reused(launch, 0 if own else -1))
        self.found: dict[str, float] = {}
        self.met = 0
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
        """Busy time of one processor, of all of them alike, in one launch."""
        return 1e6 * self.seconds.get(engine, 0.0) / min(self.tiles, self.machine.parallel)

    def memory_us(self) -> float:
        """The longer of what memory and what its cache take for one launch."""
        cache = self.machine.spaces.get("cache", self.machine.spaces["global"])
        whole = sum(
            DTYPES[p.dtype] * prod(number(e, self.sizes) for e in p.shape)
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
            self._add("ahead", moved * (value.depth > 1))

    def _asked(self, s: Load | Store) -> float:
        value = self.values[s.value]
        return DTYPES[value.dtype] * self._elements(s.value)

    def _operations(self, s: Dot) -> float:
        axes = dict.fromkeys((*self.values[s.value].names, *s.over))
        return 2.0 * prod(self._extent(i) for i in axes)

    def _add(self, name: str, count: float) -> None:
        self.found[name] = self.found.get(name, 0.0) + count


def _busy(walks: list[_Walk], machine: Machine) -> dict[str, float]:
    """The share of the estimated time that memory and each sort of unit is busy."""
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
    """Loaded values that are read more than once: by two statements, in a loop around which they
    were loaded, by several programs, or against each row of another operand.

    once: the depth of what is done first, -1 where a program goes through several tiles.
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
            return {s.a.value, s.b.value}
        case Reduction() | Scan():
            return {s.source.value}
        case Store():
            return {s.value}
    tiles = [getattr(s, name, None) for name in ("source", "borders", "table", "at")]
    return {t.value for t in tiles if isinstance(t, Tile)}


def _within(block: tuple[Statement, ...], depth: int) -> Iterator[tuple[int, Statement]]:
    """Every statement with the number of loops around it, counted from `depth`."""
    for s in block:
        yield depth, s
        if isinstance(s, Loop):
            yield from _within(s.body, depth + 1)


def _passes(nest: LoopNest) -> int:
    """The most places where one global tensor is gone through."""
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
    """Reductions and products of a launch that go on from one tile of a loop to the next."""
    return sum(
        isinstance(s, Scan) or (isinstance(s, Reduction | Dot) and s.accumulate)
        for body in _bodies(launch)
        for s in body
    )


def _barriers(launch: Launch, machine: Machine) -> int:
    """Places where what others loaded is waited for: other programs, or other threads."""
    shared = sum(isinstance(s, Load) and s.shared is not None for s in launch.statements())
    return shared + machine.model.exchanges(launch)


def _all(nest: LoopNest) -> Iterator[Statement]:
    for launch in nest.launches:
        yield from launch.statements()


def _share(part: float, whole: float) -> float:
    return min(1.0, part / whole) if whole > 0 else 0.0
