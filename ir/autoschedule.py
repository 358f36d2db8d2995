"""The autoschedule: a good first schedule for any spec on any machine, and a plain one.

It states what is nearly always right (one launch where that is legal, contractions on the
matrix unit, loads double-buffered) and tries a small set of tile sizes against the estimate
of `cost`. The search starts from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from ir.atomic import facts_with_places
from ir.autoschedule_lanes import autoschedule_lanes
from ir.contraction import contraction
from ir.cuts import segments
from ir.errors import KernelError
from ir.estimate import estimate
from ir.estimate_lanes import roomy
from ir.index_roles import roles
from ir.lower import lower
from ir.machine import Machine
from ir.openings import (
    alongside,
    deferred,
    eight,
    folded_by,
    launch_ends,
    reduced,
    streamed,
    tiled,
    walked,
)
from ir.precision import narrowest
from ir.schedule import Decision, Schedule
from ir.sizes import bind
from ir.sizes import value as number
from ir.spec import Index, Spec
from ir.stage_edits import stage
from ir.verbs import canonical
from ir.verify import facts as facts_of

MOST_TRIED = 400
GRID_TILES = (1, 4, 16, 64)
LOOP_TILES = (0, 32, 128)  # 0: the whole index


def autoschedule(spec: Spec, machine: Machine, sizes: Mapping[str, int]) -> Schedule:
    """The best of a small set of schedules by the estimate; raises KernelError where the spec
    cannot be lowered at all."""
    if machine.has_registers:
        return autoschedule_lanes(spec, machine, sizes)
    base = _base(spec, machine)
    openings = ((), streamed(spec), deferred(spec), alongside(spec), walked(spec))
    extras = tuple(dict.fromkeys(openings))
    best, least, fault = None, float("inf"), None
    for tiles in _limited(_tilings(spec, base, sizes)):
        looped = {d.subject for d in tiles if d.verb == "tile"}
        for extra in extras:
            folds = any(d.verb in ("stream", "fuse", "defer") for d in extra)
            if folds and not looped & reduced(spec, extra):
                continue
            schedule = canonical(Schedule(spec.name, (*base, *tiles, *extra)))
            try:
                nest = lower(spec, schedule, machine, sizes)
            except KernelError as error:
                fault = fault or error
                continue
            time = estimate(nest, machine, sizes)
            if time < least:
                best, least = schedule, time
    if best is None:
        raise fault or KernelError(f"`{spec.name}` has no schedule on `{machine.name}`")
    return best


def plain(spec: Spec, machine: Machine, sizes: Mapping[str, int]) -> Schedule:
    """What one would write first: a launch per equation, one row a tile, nothing staged ahead.

    A row that does not fit is walked in a loop of tiles, along what is folded first.
    """
    ends = tuple(Decision("kernel", e.target) for e in spec.equations[:-1])
    taps = roles(spec).taps if machine.has_registers else frozenset()
    facts = facts_with_places(spec)
    folded = {i for e in spec.equations for i in folded_by(e.value)}
    rows = {i for e in spec.equations for i in (e.indices[:-1] or e.indices) if i not in folded}
    legal, fault = None, None
    for kept, summed in product((0, 128, 32, 8, 1), (0, 128, 32, 8, 1)):
        tiles: list[Decision] = []
        for name, span in facts.ranges.items():
            size = summed if name in folded else kept
            if name in rows:
                tiles += tiled(name, 1, "grid")
            elif name in taps:
                tiles += tiled(name, 1, "loop")
            elif span.jagged or size:
                tiles += tiled(name, size or 32, "loop")
        schedule = canonical(Schedule(spec.name, (*ends, *tiles)))
        try:
            nest = lower(spec, schedule, machine, sizes)
        except KernelError as error:
            fault = error
            continue
        if roomy(nest, machine, sizes):
            return schedule
        legal = legal or schedule
    if legal is None:
        raise fault
    return legal


def _base(spec: Spec, machine: Machine) -> tuple[Decision, ...]:
    """The decisions that do not depend on tile sizes."""
    made = list(launch_ends(spec))
    for e in spec.equations:
        found = contraction(e)
        if found is None or "matrix" not in machine.units:
            continue
        made.append(Decision("compute", e.target, (("unit", "matrix"),)))
        narrow = narrowest(spec)
        if eight(spec, machine, found):
            continue
        if narrow and machine.has_matrix(narrow[0]):
            made.append(Decision("precision", e.target, (("dtype", narrow[0]),)))
    made += [stage(t.name, 2) for t in spec.inputs]
    made += [stage(t.name, 2) for t in spec.outputs]
    return tuple(made)


def _tilings(
    spec: Spec, base: tuple[Decision, ...], sizes: Mapping[str, int]
) -> Iterator[tuple[Decision, ...]]:
    """Choices of tile sizes: stored indices on the grid, folded ones whole or in a loop."""
    bound = bind(spec, sizes)
    facts = facts_of(spec)
    parts = segments(spec, Schedule(spec.name, base))
    folded = {i for s in parts for i in s.folded}
    scalar = {n.name for r in facts.ranges.values() if r.jagged
              for e in (r.low, r.high) for n in e.walk() if isinstance(n, Index)}
    stored = {i for s in parts for e in s.equations if e.target in s.stored for i in e.indices}
    options = []
    for name, span in facts.ranges.items():
        extent = 0 if span.jagged else number(span.high, bound)
        if span.jagged:
            options.append([tiled(name, 32, "loop"), tiled(name, 128, "loop")])
        elif name in scalar:
            options.append([tiled(name, 1, "grid")])
        elif name in stored and name not in folded:
            options.append([
                *([()] if extent <= 4096 else []),
                *(tiled(name, t, "grid") for t in GRID_TILES if t <= max(1, extent // 2)),
            ])
        else:
            options.append([
                tiled(name, t, "loop") if t else () for t in LOOP_TILES if t < extent
            ])
    for choice in product(*options):
        yield tuple(d for part in choice for d in part)


def _limited(choices: Iterator[tuple[Decision, ...]]) -> Iterator[tuple[Decision, ...]]:
    """All choices where there are few, else an even sample of them."""
    listed = list(choices)
    step = max(1, -(-len(listed) // MOST_TRIED))
    offset = 0
    for at in range(0, len(listed), step):
        yield listed[(at + offset) % len(listed)]
        offset = (offset + 7) % step if step > 1 else 0
