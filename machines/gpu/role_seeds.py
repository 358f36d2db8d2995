"""Seeds with roles: the DMA engine moves what matmuls take, and the threads that compute only compute.

The estimate that chooses the seed counts operations and bytes. It does not tell loads by threads from boxes,
nor what is in flight with what. So a search tries these beside the seed:

    boxes    the seed; all that is prefetched is copied in bulk
    wide     and the result's tile has 256 columns; it is stored in bulk, by blocks that stay
    later    and of two matmuls in a loop, the second one is done one iteration later
    sooner   and the first one is one iteration ahead, with more stages than are in use; what is loaded outside of the loop
             is copied in bulk, too
    rows     and two warpgroups have 64 rows each
    small    of a triangle: one warpgroup with 64 rows, and as many blocks as a multiprocessor holds

Rows of a triangle (`causal_bound`) are unlike: blocks begin with the longest rows of all heads, so that what is left
at the end is short.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from ir.edits.stages import copy, pipeline
from ir.lower.lower import fits, lower
from ir.lower.verb_table import canonical
from ir.machine import Machine
from ir.nest.nest import Load, Loop, LoopNest
from ir.schedule import Decision, Schedule
from ir.spec import Spec
from machines.gpu.index_roles import roles
from machines.gpu.matmuls import AHEAD, AHEAD_STAGES

COLUMNS = 256  # the most of one instruction of a warpgroup
STEP = 128  # of the loop between two matmuls
ROWS, WARPGROUP, WARP = 64, 128, 32  # rows of a warpgroup; its threads; those of a warp
STAGES = (3, 2)
SOONER_STAGES = (AHEAD_STAGES + 2, AHEAD_STAGES + 1)  # so that no copy is waited for
GROUP = 16  # rows of tiles that blocks walk through together


def with_roles(
    spec: Spec, machine: Machine, sizes: Mapping[str, int], first: Schedule
) -> tuple[Schedule, ...]:
    """Schedules like a seed that are legal at some sizes, in the order above; none where the seed has
    nothing that is prefetched."""
    moved = {d.subject for d in first.of("pipeline")}
    nest = lower(spec, first, machine, sizes) if moved else None
    if nest is None or not copied_alone(nest, moved, spec):
        return ()
    boxes = changed(_longest_first(first), *(copy(tensor, "bulk") for tensor in sorted(moved)))
    later = tuple(_later(boxes, machine, STEP))
    kinds = [
        [boxes],
        _wide(spec, boxes),
        later,
        [s for one in later[:1] for s in _sooner(one, _loaded(nest, spec) - moved)],
        [_rows(spec, s, STEP) for s in later],
        _small(spec, boxes, machine),
    ]
    found = (next((s for s in kind if fits(spec, s, machine, sizes)), None) for kind in kinds)
    return tuple(dict.fromkeys(s for s in found if s is not None))


def copied_alone(nest: LoopNest, moved: Collection[str], spec: Spec) -> bool:
    """Whether these are inputs, and loops that load one load no other tensor of several dimensions."""
    loops = [s for one in nest.launches for s in one.statements() if isinstance(s, Loop)]
    loads = [{x.tensor for x in s.body if isinstance(x, Load) and len(x.region) > 1} for s in loops]
    inputs = {t.name for t in spec.inputs}
    return inputs.issuperset(moved) and all(own <= set(moved) for own in loads if own & set(moved))


def _wide(spec: Spec, schedule: Schedule) -> Iterator[Schedule]:
    """With wide tiles, where there is one matmul, of operands as they are or rounded to 16 bits. The result may
    be no box, and fit no block's memory."""
    placed = [d.subject for d in schedule.of("place") if d.option("level") == "grid"]
    split = any(str(d.option("dtype")).startswith("tf32") for d in schedule.of("precision"))
    if len(schedule.of("compute")) != 1 or not placed or split:
        return
    out = [d.subject for d in schedule.of("threads")][-1]
    columns = placed[-1].removesuffix(".outer")
    tile = schedule.find("tile", columns)
    if tile is None or tile.number("size") >= COLUMNS:
        return
    made = [
        Decision("tile", columns, (("size", COLUMNS),)),
        Decision("threads", out, (("count", COLUMNS),)),
        Decision("persistent", out, (("programs", 1),)),
        *(
            Decision("rasterize", d.subject, (("size", GROUP), *d.options[1:]))
            for d in schedule.of("rasterize")
        ),
    ]
    if out in {t.name for t in spec.outputs}:
        yield changed(schedule, *made, copy(out, "bulk"))
    yield changed(schedule, *made)


def _longest_first(schedule: Schedule) -> Schedule:
    """With the rows of a triangle, of which blocks take the longest first, before other indices of the grid."""
    rows = {str(d.option("at")) for d in schedule.of("causal_bound")}
    ranked = sorted(
        schedule.decisions,
        key=lambda d: d.verb != "place" or d.subject.removesuffix(".outer") not in rows,
    )
    return canonical(Schedule(schedule.kernel, tuple(ranked)))


def _later(schedule: Schedule, machine: Machine, size: int) -> Iterator[Schedule]:
    """With the second of two matmuls one iteration later, so large a step, and as many stages as fit."""
    looped = [d.subject for d in schedule.of("place") if d.option("level") == "loop"]
    products = [d.subject for d in schedule.of("compute")]
    if len(products) != 2 or len(looped) != 1 or not machine.renders("overlap"):
        return
    step = Decision("tile", looped[0].removesuffix(".outer"), (("size", size),))
    for stages in STAGES:
        deep = [pipeline(d.subject, stages) for d in schedule.of("pipeline")]
        yield changed(schedule, step, *deep, Decision("overlap", products[-1]))


def _loaded(nest: LoopNest, spec: Spec) -> set[str]:
    """The inputs of which tiles of several dimensions are loaded."""
    loads = [s for one in nest.launches for s in one.statements() if isinstance(s, Load)]
    return {s.tensor for s in loads if len(s.region) > 1} & {t.name for t in spec.inputs}


def _sooner(schedule: Schedule, others: Collection[str]) -> Iterator[Schedule]:
    """With the first of two matmuls one iteration ahead, where the second one is one later. others: tensors that
    its loop does not load."""
    ahead = [Decision("overlap", d.subject, AHEAD) for d in schedule.of("overlap")]
    for stages in SOONER_STAGES:
        deep = [pipeline(d.subject, stages) for d in schedule.of("pipeline")]
        yield changed(schedule, *deep, *ahead, *(copy(t, "bulk") for t in sorted(others)))


def _rows(spec: Spec, schedule: Schedule, count: int) -> Schedule:
    """With so many rows of the results of its matmuls, 64 for each warpgroup."""
    sides = {i for rows, _ in roles(spec).sides for i in rows}
    rows = [i for d in schedule.of("place") if (i := d.subject.removesuffix(".outer")) in sides]
    threads = [
        Decision("threads", d.subject, (("count", count // ROWS * WARPGROUP),))
        for d in schedule.of("threads")
    ]
    return changed(schedule, *(Decision("tile", i, (("size", count),)) for i in rows), *threads)


def _small(spec: Spec, schedule: Schedule, machine: Machine) -> Iterator[Schedule]:
    """With one warpgroup and one warp of producers, where the result is a triangle's."""
    if schedule.of("causal_bound"):
        for made in _later(schedule, machine, ROWS):
            small = _rows(spec, made, ROWS)
            out = small.of("threads")[-1].subject
            yield changed(small, Decision("roles", out, (("producers", WARP),)))


def changed(schedule: Schedule, *decisions: Decision) -> Schedule:
    """A schedule with decisions in the places of those of the same verbs on the same subjects."""
    made = {(d.verb, d.subject): d for d in (*schedule.decisions, *decisions)}
    return canonical(Schedule(schedule.kernel, tuple(made.values())))
