"""Seeds with warp specialization: producer warps issue bulk copies, consumer warps only compute.

The estimate that chooses the seed counts operations and bytes. It does not distinguish loads by
threads from boxes, and does not know what overlaps. So a search tries these beside the seed:

    boxes    the seed; all that is prefetched is copied in bulk
    wide     and the result's tile has 256 columns; it is stored in bulk, by persistent blocks
    later    and of two matmuls in a loop, the second one runs one iteration later
    sooner   and the first one runs one iteration ahead, with spare stages; what is loaded outside of
             the loop is copied in bulk, too
    rows     and two warpgroups have 64 rows each
    small    causal: one warpgroup with 64 rows, and as many blocks as a multiprocessor holds

Rows of a causal bound have unequal lengths. Blocks begin with the longest rows of all heads, so
that the tail of the launch is short.
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

COLUMNS = 256  # largest N of one warpgroup instruction
STEP = 128  # tile of the loop that contains two matmuls
# Rows of a warpgroup; threads of a warpgroup; threads of a warp
ROWS, WARPGROUP, WARP = 64, 128, 32
STAGES = (3, 2)
SOONER_STAGES = (AHEAD_STAGES + 2, AHEAD_STAGES + 1)  # enough that no copy is waited for
GROUP = 16  # rows of tiles in a rasterization group


def with_roles(
    spec: Spec, machine: Machine, sizes: Mapping[str, int], first: Schedule
) -> tuple[Schedule, ...]:
    """Legal schedules with roles that resemble a seed, in the order above. Empty where the seed prefetches nothing."""
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
    """Whether these tensors are inputs, and loops that load one of them load no other multi-dimensional tensor."""
    loops = [s for one in nest.launches for s in one.statements() if isinstance(s, Loop)]
    loads = [{x.tensor for x in s.body if isinstance(x, Load) and len(x.region) > 1} for s in loops]
    inputs = {t.name for t in spec.inputs}
    return inputs.issuperset(moved) and all(own <= set(moved) for own in loads if own & set(moved))


def _wide(spec: Spec, schedule: Schedule) -> Iterator[Schedule]:
    """The schedule with wide tiles, for a single matmul without split precision. A bulk store of
    the result may be illegal, so the schedule without one follows."""
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
    """The schedule with the rows of a causal bound as the first grid index, so that blocks start
    with the longest rows."""
    rows = {str(d.option("at")) for d in schedule.of("causal_bound")}
    ranked = sorted(
        schedule.decisions,
        key=lambda d: d.verb != "place" or d.subject.removesuffix(".outer") not in rows,
    )
    return canonical(Schedule(schedule.kernel, tuple(ranked)))


def _later(schedule: Schedule, machine: Machine, size: int) -> Iterator[Schedule]:
    """The schedule with the second of two matmuls one iteration later, with a loop tile of `size`
    and as many stages as fit."""
    looped = [d.subject for d in schedule.of("place") if d.option("level") == "loop"]
    products = [d.subject for d in schedule.of("compute")]
    if len(products) != 2 or len(looped) != 1 or not machine.renders("overlap"):
        return
    step = Decision("tile", looped[0].removesuffix(".outer"), (("size", size),))
    for stages in STAGES:
        deep = [pipeline(d.subject, stages) for d in schedule.of("pipeline")]
        yield changed(schedule, step, *deep, Decision("overlap", products[-1]))


def _loaded(nest: LoopNest, spec: Spec) -> set[str]:
    """The inputs of which multi-dimensional tiles are loaded."""
    loads = [s for one in nest.launches for s in one.statements() if isinstance(s, Load)]
    return {s.tensor for s in loads if len(s.region) > 1} & {t.name for t in spec.inputs}


def _sooner(schedule: Schedule, others: Collection[str]) -> Iterator[Schedule]:
    """The schedule with the first of two matmuls one iteration ahead and the second one later.
    others: tensors that are loaded outside of their loop."""
    ahead = [Decision("overlap", d.subject, AHEAD) for d in schedule.of("overlap")]
    for stages in SOONER_STAGES:
        deep = [pipeline(d.subject, stages) for d in schedule.of("pipeline")]
        yield changed(schedule, *deep, *ahead, *(copy(t, "bulk") for t in sorted(others)))


def _rows(spec: Spec, schedule: Schedule, count: int) -> Schedule:
    """The schedule with so many rows in its matmul tiles, 64 for each warpgroup."""
    sides = {i for rows, _ in roles(spec).sides for i in rows}
    rows = [i for d in schedule.of("place") if (i := d.subject.removesuffix(".outer")) in sides]
    threads = [
        Decision("threads", d.subject, (("count", count // ROWS * WARPGROUP),))
        for d in schedule.of("threads")
    ]
    return changed(schedule, *(Decision("tile", i, (("size", count),)) for i in rows), *threads)


def _small(spec: Spec, schedule: Schedule, machine: Machine) -> Iterator[Schedule]:
    """The schedule with one consumer warpgroup and one producer warp, for causal results."""
    if schedule.of("causal_bound"):
        for made in _later(schedule, machine, ROWS):
            small = _rows(spec, made, ROWS)
            out = small.of("threads")[-1].subject
            yield changed(small, Decision("roles", out, (("producers", WARP),)))


def changed(schedule: Schedule, *decisions: Decision) -> Schedule:
    """The schedule with decisions that replace those of the same verb on the same subject."""
    made = {(d.verb, d.subject): d for d in (*schedule.decisions, *decisions)}
    return canonical(Schedule(schedule.kernel, tuple(made.values())))
