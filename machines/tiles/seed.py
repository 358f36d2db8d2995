"""The seed schedule of processing elements.

It states what is nearly always right (one launch where that is legal, contractions on the matrix
unit, loads double-buffered) and tries a small set of tile sizes against the quick cost.
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
from ir.schedule import Decision, Schedule
from ir.sizes import bind
from ir.sizes import value as number
from ir.spec import Index, Spec
from ir.unit_steps import sectors, whole_steps
from ir.variant.atomic import facts_with_places
from ir.variant.narrow import in_range
from ir.variant.precision import narrowest
from machines.tiles.quick_cost import quick_us

MOST_TRIED = 64  # combinations of tiles that are all tried; of more, the best is climbed to
GRID_TILES = (64, 16, 4, 1)
LOOP_TILES = (8192, 1024, 128, 32, 8, 1)
LONGEST = 4096  # of an index that may be whole
DOUBT = 0.01  # of the estimate: larger tiles win where they take so little more


def seed(spec: Spec, machine: Machine, sizes: Mapping[str, int]) -> Schedule:
    """The best of a small set of schedules by the quick cost; raises KernelError where the spec
    cannot be lowered at all."""
    return _Search(spec, machine, sizes).best()


@dataclass(frozen=True, slots=True)
class _Found:
    """A schedule that was tried, and its time in microseconds."""

    us: float
    schedule: Schedule

    def beats(self, other: _Found) -> bool:
        """Whether it is faster."""
        return self.us < other.us


class _Search:
    """Tries tile sizes, with and without what goes with loops."""

    def __init__(self, spec: Spec, machine: Machine, sizes: Mapping[str, int]):
        self.spec = spec
        self.machine = machine
        self.sizes = sizes
        self.base = _base(spec, machine)
        plans = ((), online(spec), hoisted(spec), alongside(spec), walked(spec))
        self.extras = {made: in_range(spec, made, self.base, machine) for made in plans}
        self.fault: KernelError | None = None

    def best(self) -> Schedule:
        """The fastest of all choices where there are few, else the best that is climbed to."""
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
        return tried[min(near)].schedule

    def _try(self, tiles: tuple[Decision, ...]) -> _Found:
        looped = {d.subject for d in tiles if d.verb == "tile"}
        best = _Found(inf, Schedule(self.spec.name))
        for extra, base in self.extras.items():
            reductions = any(d.verb in ("online", "fuse", "hoist") for d in extra)
            if reductions and not looped & reduced(self.spec, extra):
                continue
            schedule = canonical(Schedule(self.spec.name, (*base, *tiles, *extra)))
            try:
                nest = settled(self.spec, schedule, self.machine, self.sizes)
            except KernelError as error:
                self.fault = self.fault or error
                continue
            found = _Found(quick_us(nest, self.machine, self.sizes), nest.schedule)
            best = found if found.beats(best) else best
        return best


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
    """Where to climb from: small tiles but for the last index on the grid, whose are large or
    middling, and loops whole or middling; then everything small."""
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
    """For each index, choices of its tiles, the smallest last: stored indices on the grid, reduced
    ones whole or in a loop."""
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
