"""The seed schedule of processing elements.

It makes the choices that are nearly always right: one launch where that is legal, contractions on
the matrix unit, double-buffered loads. It then tries a small set of tile sizes against the quick
cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import inf, prod

from ir.autoschedule.climb import climb
from ir.autoschedule.seeds import (
    alongside,
    eight,
    hoisted,
    integers,
    kept,
    launch_ends,
    online,
    reduced,
    tiled,
    walked,
)
from ir.contraction import contraction
from ir.edits.stages import pipeline
from ir.errors import KernelError
from ir.lower.launches import segments
from ir.lower.lower import settled
from ir.lower.verb_table import canonical
from ir.machine import Machine
from ir.memo import Recent
from ir.nest.nest import LoopNest, Recall
from ir.schedule import Decision, Schedule
from ir.sizes import bind
from ir.sizes import value as number
from ir.spec import Index, Spec
from ir.unit_steps import sectors, whole_steps
from ir.variant.atomic import facts_with_places
from ir.variant.narrow import in_range
from ir.variant.precision import narrowest
from machines.tiles.quick_cost import quick_us

MOST_TRIED = 64  # combinations of tiles that are all tried; of more, a hill climb finds the best
GRID_TILES = (64, 16, 4, 1)
LOOP_TILES = (8192, 1024, 128, 32, 8, 1)
LONGEST = 4096  # extent up to which an index may be whole
WORTH = 2.0  # multiple of the best estimate above which another algorithm is not worth a start
DOUBT = 0.01  # relative difference of estimates that counts as a tie, which larger tiles win


def seed(spec: Spec, machine: Machine, sizes: Mapping[str, int]) -> Schedule:
    """The best of a small set of schedules by the quick cost. Raises KernelError where the spec
    cannot be lowered at all."""
    return _search(spec, machine, sizes).best().schedule


def alternatives(spec: Spec, machine: Machine, sizes: Mapping[str, int]) -> tuple[Schedule, ...]:
    """The best schedule of each algorithm other than that of `seed`, such as an online reduction,
    or tiles that are kept from one loop for the next. The quick cost does not model their overlap.
    """
    search = _search(spec, machine, sizes)
    best = search.best()
    found = sorted(search.by_plan.values(), key=lambda f: f.us)
    return tuple(f.schedule for f in found if f.plan != best.plan and f.us <= WORTH * best.us)


def _search(spec: Spec, machine: Machine, sizes: Mapping[str, int]) -> _Search:
    """The search of a spec's seed schedules, which is cached."""
    key = (repr(machine), tuple(sizes.items()))
    return _SEARCHES.get(spec, key) or _SEARCHES.put(spec, key, _Search(spec, machine, sizes))


@dataclass(frozen=True, slots=True)
class _Found:
    """A schedule that was tried, and its time in microseconds."""

    us: float
    schedule: Schedule
    plan: tuple[Decision, ...] = ()  # decisions besides tile sizes and the common ones

    def beats(self, other: _Found) -> bool:
        """Whether it is faster."""
        return self.us < other.us


class _Search:
    """Searches tile sizes, with and without the decisions that need loops."""

    def __init__(self, spec: Spec, machine: Machine, sizes: Mapping[str, int]):
        self.spec = spec
        self.machine = machine
        self.sizes = sizes
        self.base = _base(spec, machine)
        again = tuple(kept(spec)) if machine.renders("keep") else ()
        plans = ((), online(spec), *again, hoisted(spec), alongside(spec), walked(spec))
        self.extras = {made: in_range(spec, made, self.base, machine) for made in plans}
        self.fault: KernelError | None = None
        self.by_plan: dict[tuple[Decision, ...], _Found] = {}  # the best of each that is legal
        self._best: _Found | None = None

    def best(self) -> _Found:
        """The fastest of all choices where there are few, else the result of a hill climb."""
        self._best = self._best or self._found()
        return self._best

    def _found(self) -> _Found:
        choices = list(_tilings(self.spec, self.base, self.machine, self.sizes))
        tried: dict[tuple[int, ...], _Found] = {}

        def at(point: tuple[int, ...]) -> _Found:
            if point not in tried:
                parts = (c[n] for c, n in zip(choices, point, strict=True))
                tried[point] = self._try(tuple(d for part in parts for d in part))
            return tried[point]

        lengths = [len(c) for c in choices]
        if prod(lengths) <= MOST_TRIED:
            for point in product(*map(range, lengths)):
                at(point)
        else:
            for start in _starts(choices):
                climb(start, lengths, at)
        least = min(f.us for f in tried.values())
        if least == inf:
            raise self.fault or KernelError(
                f"`{self.spec.name}` has no schedule on `{self.machine.name}`"
            )
        near = (point for point, f in tried.items() if f.us <= least * (1 + DOUBT))
        return tried[min(near)]

    def _try(self, tiles: tuple[Decision, ...]) -> _Found:
        looped = {d.subject for d in tiles if d.verb == "tile"}
        best = _Found(inf, Schedule(self.spec.name))
        for extra, base in self.extras.items():
            if any(d.option("over") not in {f"{i}.outer" for i in looped} for d in _keeps(extra)):
                continue
            reductions = any(d.verb in ("online", "fuse", "hoist") for d in extra)
            if reductions and not looped & reduced(self.spec, extra):
                continue
            other = {d.subject for d in _keeps(extra)}  # its slots are no stages
            free = [d for d in base if d.verb != "pipeline" or d.subject not in other]
            shared = self._broadcast(tiles, extra)
            schedule = canonical(Schedule(self.spec.name, (*free, *tiles, *extra, *shared)))
            try:
                nest = settled(self.spec, schedule, self.machine, self.sizes)
            except KernelError as error:
                self.fault = self.fault or error
                continue
            if _keeps(extra) and not _recalls(nest):
                continue  # nothing is read again
            found = _Found(quick_us(nest, self.machine, self.sizes), nest.schedule, extra)
            if extra not in self.by_plan or found.beats(self.by_plan[extra]):
                self.by_plan[extra] = found
            best = found if found.beats(best) else best
        return best

    def _broadcast(
        self, tiles: tuple[Decision, ...], extra: tuple[Decision, ...]
    ) -> tuple[Decision, ...]:
        """A multicast along the last grid loop for each kept input. Its tiles are all loaded at the
        start, when PEs would request the same lines at once. Inputs that differ along that loop
        lose the decision in lowering."""
        grid = [d.subject for d in tiles if d.option("level") == "grid"]
        if not grid or not self.machine.renders("multicast"):
            return ()
        inputs = {t.name for t in self.spec.inputs}
        kept = (d.subject for d in _keeps(extra) if d.subject in inputs)
        return tuple(Decision("multicast", name, (("over", grid[-1]),)) for name in kept)


_SEARCHES: Recent[Spec, _Search] = Recent()


def _keeps(decisions: tuple[Decision, ...]) -> list[Decision]:
    return [d for d in decisions if d.verb == "keep"]


def _recalls(nest: LoopNest) -> bool:
    return any(isinstance(s, Recall) for launch in nest.launches for s in launch.statements())


def _base(spec: Spec, machine: Machine) -> tuple[Decision, ...]:
    """The decisions that do not depend on tile sizes."""
    made = list(launch_ends(spec))
    for e in spec.equations:
        found = contraction(e)
        if found is None or "matrix" not in machine.units or integers(spec, found):
            continue
        made.append(Decision("compute", e.target, (("unit", "matrix"),)))
        narrow = narrowest(spec)
        if eight(spec, machine, found):
            continue
        if narrow and machine.has_matrix(narrow[0]):
            made.append(Decision("precision", e.target, (("dtype", narrow[0]),)))
    if machine.renders("pipeline"):
        made += [pipeline(t.name, 2) for t in (*spec.inputs, *spec.outputs)]
    return tuple(made)


def _starts(choices: list[list[tuple[Decision, ...]]]) -> dict[tuple[int, ...], None]:
    """Starting points of a hill climb: small tiles, except for the last grid index, which gets
    large or medium ones, with whole or medium loops; and all small."""
    lengths = [len(c) for c in choices]
    small, middling = [n - 1 for n in lengths], [n // 2 for n in lengths]
    grid = [a for a, c in enumerate(choices) if any(d.option("level") == "grid" for d in c[-1])]
    made: dict[tuple[int, ...], None] = {}
    for loops, part in (([0] * len(lengths), 4), ([0] * len(lengths), 2), (middling, 4)):
        start = [small[a] if a in grid else loops[a] for a in range(len(lengths))]
        for last in grid[-1:]:
            start[last] = lengths[last] // part
        made[tuple(start)] = None
    return {**made, tuple(small): None}


def _tilings(
    spec: Spec, base: tuple[Decision, ...], machine: Machine, sizes: Mapping[str, int]
) -> Iterator[list[tuple[Decision, ...]]]:
    """Yields the tile choices of each index, smallest last: grid tiles for stored indices; whole,
    or loop tiles, for reduced ones."""
    bound = bind(spec, sizes)
    facts, steps = facts_with_places(spec), sectors(spec, machine)
    parts = segments(spec, Schedule(spec.name, base))
    reduced = {i for s in parts for i in s.reduced}
    scalar = {
        n.name
        for r in facts.ranges.values()
        if r.jagged
        for e in (r.low, r.high)
        for n in e.walk()
        if isinstance(n, Index)
    }
    stored = {i for s in parts for e in s.equations if e.target in s.stored for i in e.indices}
    for name, span in facts.ranges.items():
        extent = 0 if span.jagged else number(span.high, bound)
        if span.jagged:
            yield [tiled(name, 128, "loop"), tiled(name, 32, "loop")]
        elif name in scalar:
            yield [tiled(name, 1, "grid")]
        elif name in stored and name not in reduced:
            grid = [whole_steps(t, steps.get(name, 1)) for t in GRID_TILES]
            tiles = [tiled(name, t, "grid") for t in grid if t <= max(1, extent // 2)]
            yield [*([()] if extent <= LONGEST else []), *tiles]
        else:
            whole = [()] if extent <= LONGEST else []
            loop = [whole_steps(t, steps.get(name, 1)) for t in LOOP_TILES]
            yield [*whole, *(tiled(name, t, "loop") for t in loop if t < extent)]
