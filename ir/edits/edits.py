"""Edits: every single change that a schedule admits on a machine; the search space.

The verbs list what could be decided. Lowering the changed schedule shows whether it is legal as a
whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import cast

from ir.contraction import contraction
from ir.edits.stages import copy, direct_loads, stage_changes
from ir.edits.variant import launches, variant_changes
from ir.errors import KernelError
from ir.lower.verb_table import OF_LAUNCH, canonical
from ir.machine import DIRECT, Machine
from ir.recurrence import recurrences
from ir.schedule import Decision, Schedule
from ir.sizes import bind
from ir.sizes import value as number
from ir.spec import Equation, Facts, Index, Reduce, Scan, Spec
from ir.unit_steps import even_tiles, sectors, tile_sizes, unit_steps
from ir.variant.atomic import facts_with_places, scattered
from ir.variant.derived import TRIPLE, after
from ir.variant.derived import ends as made_ends
from ir.variant.expansion import mirrored, top_of
from ir.variant.narrow import OF_OPERANDS, OutOfRange, require_range
from ir.variant.precision import EXACT, NARROW, narrowest, natural
from ir.variant.variant import depends, rewritten

UNROLLED = (2, 4)  # iterations of a loop at once
JAGGED = 1024  # extent that a jagged range counts as


@dataclass(frozen=True, slots=True)
class Edit:
    """One change: a decision replaced, added (no old) or dropped (no new)."""

    old: Decision | None
    new: Decision | None
    # Subjects whose decision of this verb changes with it, where they have one.
    alike: tuple[str, ...] = ()

    @property
    def decision(self) -> Decision:
        """The decision that the edit is about: the new one, else the one that is dropped."""
        found = self.new or self.old
        assert found is not None, "an edit has one of the two"
        return found

    def apply(self, schedule: Schedule) -> Schedule:
        """The schedule after the change, in canonical order.

        Decisions on a loop or a launch that the change removes are dropped, too.
        """
        decisions = list(schedule.decisions)
        if self.old is not None and self.old in decisions:
            at = decisions.index(self.old)
            decisions[at : at + 1] = [self.new] if self.new else []
        elif self.new is not None:
            decisions.append(self.new)
        if self.alike:
            decisions = list(self._with_alike(decisions))
        if self.old is not None and self.old.verb == "kernel" and self.new is None:
            lost = {(verb, self.old.subject) for verb in OF_LAUNCH}
            decisions = [d for d in decisions if (d.verb, d.subject) not in lost]
        if any(d is not None and d.verb == "threads" for d in (self.old, self.new)):
            # they divide the old number of threads
            decisions = [d for d in decisions if d.verb != "warps"]
        changed = Schedule(schedule.kernel, tuple(decisions))
        return canonical(_without_dangling(after(changed, self.old, self.new)))

    def _with_alike(self, decisions: Iterable[Decision]) -> Iterator[Decision]:
        for d in decisions:
            if d.verb != self.decision.verb or d.subject not in self.alike:
                yield d
            elif self.new is not None:
                yield replace(self.new, subject=d.subject)

    def __str__(self) -> str:
        if self.old and self.new:
            return f"{self.old} -> {self.new}"
        return f"- {self.old}" if self.old else f"+ {self.new}"


def difference(a: Schedule, b: Schedule) -> tuple[Edit, ...]:
    """The edits that lead from one schedule to another, by verb and subject."""
    keys = dict.fromkeys((d.verb, d.subject) for d in (*a.decisions, *b.decisions))
    pairs = ((a.find(*key), b.find(*key)) for key in keys)
    return tuple(Edit(old, new) for old, new in pairs if old != new)


def neighbours(
    spec: Spec, schedule: Schedule, machine: Machine, sizes: Mapping[str, int]
) -> tuple[Edit, ...]:
    """Every single change to a schedule, in a fixed order.

    Some can prove illegal, but none because it rounds operands to a float that may not hold them.
    The schedule may be illegal, too. If it divides the equations into no legal launches, changes of
    launches and of their matmuls are left out.
    """
    given = _Ground.of(spec, machine, tuple(sizes.items()))
    formed = _Ground.of(_formed(spec, schedule), machine, tuple(sizes.items()))
    apart = () if launches(formed.spec, schedule) else (_launches, _matmuls)
    found = dict.fromkeys(
        edit
        for lister in _LISTERS
        if lister not in apart
        for edit in lister(given if lister in (_pairs, _units) else formed, schedule)
    )
    for old, new in variant_changes(spec, formed.spec, schedule, machine):
        found[Edit(old, new)] = None
    return tuple(edit for edit in found if _in_range(spec, edit, schedule, machine))


def _in_range(spec: Spec, edit: Edit, schedule: Schedule, machine: Machine) -> bool:
    """Whether the changed schedule rounds only to narrow floats that hold the values.

    True as well for a schedule that is illegal for another reason.
    """
    verbs = {d.verb for d in (edit.old, edit.new) if d}
    changed = edit.apply(schedule) if verbs & set(OF_OPERANDS) else schedule
    if changed is schedule or not schedule.of("precision") and "precision" not in verbs:
        return True
    try:
        require_range(spec, changed, machine)
    except OutOfRange:
        return False
    except KernelError:
        return True
    return True


def _formed(spec: Spec, schedule: Schedule) -> Spec:
    """The spec with the tensors and indices that decisions add, if the decisions are legal."""
    try:
        return rewritten(spec, schedule)
    except KernelError:
        return spec


@dataclass(frozen=True, slots=True)
class _Ground:
    """Facts that all schedules of a spec share."""

    spec: Spec
    facts: Facts
    machine: Machine
    extents: Mapping[str, int]  # of every index
    sectors: Mapping[str, int]
    steps: Mapping[str, int]  # of the matrix unit

    @staticmethod
    def of(spec: Spec, machine: Machine, sizes: tuple[tuple[str, int], ...]) -> _Ground:
        facts = facts_with_places(spec)
        bound = bind(spec, dict(sizes))
        extents = {
            name: JAGGED if span.jagged else number(span.high, bound)
            for name, span in facts.ranges.items()
        }
        return _Ground(
            spec, facts, machine, extents, sectors(spec, machine), unit_steps(spec, machine)
        )

    @property
    def reduced(self) -> set[str]:
        """Indices that an equation reduces or scans."""
        return {
            i
            for e in self.spec.equations
            for i in (*e.reduced, *([e.value.along] if isinstance(e.value, Scan) else ()))
        }


def _tiles(ground: _Ground, schedule: Schedule) -> Iterator[Edit]:
    for index, extent in ground.extents.items():
        old = schedule.find("tile", index)
        sizes = tile_sizes(
            min(extent, ground.machine.model.largest_tile), ground.sectors.get(index, 1)
        )
        for size in sorted({*sizes, *_even(ground, schedule, index)}):
            new = Decision("tile", index, (("size", size),))
            if new != old:
                yield Edit(old, new)
        if old and not ground.facts.ranges[index].jagged:
            yield Edit(old, None)


def _even(ground: _Ground, schedule: Schedule, index: str) -> Iterator[int]:
    """The tile sizes of a grid index with which every processor has the same number of tiles.

    Only for machines whose launches can use tiles that are no powers of two. Like those of
    `tile_sizes`, sizes of at least the matrix unit's step are multiples of it.
    """
    grid = [
        d.subject.removesuffix(".outer")
        for d in schedule.of("place")
        if d.option("level") == "grid"
    ]
    if not ground.machine.model.even_grids or index not in grid:
        return
    beside = 1
    for other in grid:
        tile = schedule.find("tile", other)
        if other != index and tile is not None:
            beside *= -(-ground.extents.get(other, 1) // tile.number("size", 1))
    step = ground.steps.get(index, 1)
    sizes = even_tiles(ground.extents[index], ground.machine.parallel, beside)
    yield from (size for size in sizes if size < step or size % step == 0)


def _places(ground: _Ground, schedule: Schedule) -> Iterator[Edit]:
    for tile in schedule.of("tile"):
        span = ground.facts.ranges.get(tile.subject)  # None if a decision added the index
        if span is not None and span.jagged:
            continue
        loop = f"{tile.subject}.outer"
        old = schedule.find("place", loop)
        for level in ("grid", "loop"):
            new = Decision("place", loop, (("level", level),))
            if new != old and (level == "loop" or tile.subject not in ground.reduced):
                yield Edit(old, new)


def _orders(ground: _Ground, schedule: Schedule) -> Iterator[Edit]:
    """Each placed loop moved to the front: the grid's first index changes slowest."""
    for place in schedule.of("place")[1:]:
        yield _Front(place, place)


@dataclass(frozen=True, slots=True)
class _Front(Edit):
    """A placed loop moved before the others."""

    def apply(self, schedule: Schedule) -> Schedule:
        rest = [d for d in schedule.decisions if d != self.old]
        return canonical(Schedule(schedule.kernel, (cast(Decision, self.new), *rest)))

    def __str__(self) -> str:
        return f"{self.new} first"


@dataclass(frozen=True, slots=True)
class _Direct(Edit):
    """Everything that a loop loads, or nothing of it, copied directly to shared memory."""

    def apply(self, schedule: Schedule) -> Schedule:
        loaded = (self.decision.subject, *self.alike)
        rest = [d for d in schedule.decisions if d.verb != "copy" or d.subject not in loaded]
        made = [replace(self.new, subject=name) for name in loaded] if self.new else []
        return canonical(Schedule(schedule.kernel, (*rest, *made)))


def _stages(ground: _Ground, schedule: Schedule) -> Iterator[Edit]:
    """Where tensors are loaded, their pipeline stages, and which engine copies them."""
    for change in stage_changes(ground.spec, schedule, ground.machine, ground.reduced):
        yield Edit(*change)
    for names in direct_loads(ground.spec, schedule, ground.machine, ground.reduced):
        first, *others = (copy(name, DIRECT) for name in names)
        old = schedule.find("copy", names[0])
        yield _Direct(old, None if old == first else first, tuple(d.subject for d in others))


def _pairs(ground: _Ground, schedule: Schedule) -> Iterator[Edit]:
    """`multicast` for inputs and loops, `fuse` and `online` for reductions over one index, `hoist`
    for factors of sums."""
    shares = "multicast" in ground.machine.model.verbs and ground.machine.renders("multicast")
    for tile in schedule.of("tile") if shares else ():
        for tensor in ground.spec.inputs:
            if tile.subject not in ground.reduced:
                yield _toggle(schedule, "multicast", tensor.name, f"{tile.subject}.outer", "over")
    reductions = [e for e in ground.spec.equations if isinstance(e.value, Reduce)]
    for a in reductions:
        for b in reductions:
            if a is b or set(a.reduced) != set(b.reduced):
                continue
            if depends(ground.spec, a.target, b.target):
                continue
            verb = "online" if a.reduce.reduction == "max" else "fuse"
            yield _toggle(schedule, verb, a.target, b.target)
        if a.reduce.reduction in ("argmax", "argmin"):
            yield _toggle(schedule, "online", top_of(a.target), a.target)
    targets = [e for e in ground.spec.equations if not isinstance(e.value, Reduce)]
    for r in targets:
        for y in targets:
            total = any(isinstance(_definition(ground.spec, s), Reduce) for s in y.sources())
            if r is not y and total and depends(ground.spec, y.target, r.target):
                yield _toggle(schedule, "hoist", r.target, y.target)


def _kept(ground: _Ground, schedule: Schedule) -> Iterator[Edit]:
    """`keep` for inputs that a loop over an index loads.

    Where there can be two loops over the index, also for computed tensors that are read along it.
    """
    machine = ground.machine
    if "keep" not in machine.model.verbs or not machine.renders("keep"):
        return
    inputs = {t.name for t in ground.spec.inputs}
    outputs = {t.name for t in ground.spec.outputs}
    for index in (d.subject for d in schedule.of("tile")):
        place = schedule.find("place", f"{index}.outer")
        if place is not None and place.option("level") == "grid" and index not in ground.reduced:
            continue
        equations = ground.spec.equations
        ends = [e for e in equations if index in e.reduced]
        ends += [e for e in equations if e.target in outputs and index in e.indices]
        read = [r.tensor for e in equations for r in e.reads() if Index(index) in r.at]
        for name in dict.fromkeys(read):
            if len(ends) < 2 and name not in inputs:
                continue
            yield _toggle(schedule, "keep", name, f"{index}.outer", "over")


def _definition(spec: Spec, tensor: str) -> object:
    return next((e.value for e in spec.equations if e.target == tensor), None)


def _toggle(schedule: Schedule, verb: str, subject: str, other: str, option: str = "into") -> Edit:
    new = Decision(verb, subject, ((option, other),))
    old = schedule.find(verb, subject)
    return Edit(old, None) if old == new else Edit(old, new)


def _units(ground: _Ground, schedule: Schedule) -> Iterator[Edit]:
    for e in ground.spec.equations:
        if contraction(e) is None:
            continue
        old = schedule.find("compute", e.target)
        for unit in ("matrix", "vector"):
            new = Decision("compute", e.target, (("unit", unit),))
            if new != old and unit in ground.machine.units:
                yield Edit(old, new)
        rounded = schedule.find("precision", e.target)
        for dtype in narrowest(ground.spec):
            new = Decision("precision", e.target, (("dtype", dtype),))
            yield Edit(rounded, None if rounded == new else new)
        for dtype in _operands(ground, schedule, e):
            new = Decision("precision", e.target, (("dtype", dtype),))
            yield Edit(rounded, None if rounded == new else new)


def _operands(ground: _Ground, schedule: Schedule, e: Equation) -> tuple[str, ...]:
    """The operand dtypes that a matrix unit has for f32 matmuls."""
    compute, found = schedule.find("compute", e.target), contraction(e)
    if not ground.machine.has_matrix(NARROW) or compute is None or found is None:
        return ()
    computed = {x.target for x in ground.spec.equations}
    held = {natural(side, ground.facts.tensors, computed) for side in (found.a, found.b)}
    return () if compute.option("unit") != "matrix" or held <= set(EXACT) else (NARROW, TRIPLE)


def _kernels(ground: _Ground, schedule: Schedule) -> Iterator[Edit]:
    for e in ground.spec.equations[:-1]:
        if e.target in (*made_ends(schedule), *mirrored(ground.spec), *scattered(ground.spec)):
            continue
        new = Decision("kernel", e.target)
        old = schedule.find("kernel", e.target)
        yield Edit(old, None) if old else Edit(None, new)
    for scan in mirrored(ground.spec).values() if "mirror" in ground.machine.model.verbs else ():
        old, new = schedule.find("mirror", scan), Decision("mirror", scan)
        yield Edit(old, None) if old else Edit(None, new)
    for r in recurrences(ground.spec):
        old = next((d for d in schedule.of("carry") if d.subject in r.targets), None)
        yield Edit(old, None if old else Decision("carry", r.targets[-1]))


def _launches(ground: _Ground, schedule: Schedule) -> Iterator[Edit]:
    """Decisions on a launch as a whole."""
    for old, new in ground.machine.model.launch_changes(ground.spec, schedule, ground.machine):
        yield Edit(old, new)


def _matmuls(ground: _Ground, schedule: Schedule) -> Iterator[Edit]:
    """How the matrix unit computes each matmul."""
    for old, new in ground.machine.model.matmul_changes(ground.spec, schedule, ground.machine):
        yield Edit(old, new)


def _unrolled(ground: _Ground, schedule: Schedule) -> Iterator[Edit]:
    """Loops over tiles, unrolled by a factor."""
    machine = ground.machine
    if "unroll_loop" not in machine.model.verbs or not machine.renders("unroll_loop"):
        return
    grid = {d.subject for d in schedule.of("place") if d.option("level") == "grid"}
    for loop in (f"{d.subject}.outer" for d in schedule.of("tile")):
        old = schedule.find("unroll_loop", loop)
        for factor in UNROLLED if loop not in grid else ():
            new = Decision("unroll_loop", loop, (("factor", factor),))
            if new != old:
                yield Edit(old, new)
        if old:
            yield Edit(old, None)


def _serpentine(ground: _Ground, schedule: Schedule) -> Iterator[Edit]:
    """Every second loop over the same tiles in reverse order."""
    if "serpentine" not in ground.machine.model.verbs:
        return
    grid = {d.subject for d in schedule.of("place") if d.option("level") == "grid"}
    for loop in (f"{d.subject}.outer" for d in schedule.of("tile")):
        old, new = schedule.find("serpentine", loop), Decision("serpentine", loop)
        if old:
            yield Edit(old, None)
        elif loop not in grid:
            yield Edit(None, new)


_LISTERS = (
    _tiles,
    _places,
    _orders,
    _stages,
    _pairs,
    _kept,
    _units,
    _kernels,
    _launches,
    _matmuls,
    _unrolled,
    _serpentine,
)


def _without_dangling(schedule: Schedule) -> Schedule:
    loops = {f"{d.subject}.outer" for d in schedule.of("tile")}
    grid = {d.subject for d in schedule.of("place") if d.option("level") == "grid"} & loops
    units = {d.subject for d in schedule.of("compute") if d.option("unit") == "matrix"}
    kept = []
    for d in schedule.decisions:
        if d.verb in ("unroll_loop", "serpentine") and d.subject not in loops - grid:
            continue
        if d.verb in ("warps", "instruction", "overlap") and d.subject not in units:
            continue
        if d.verb == "place" and d.subject not in loops:
            continue
        if d.verb in ("stream_k", "pingpong") and not schedule.of("persistent"):
            continue
        if d.verb == "cluster" and f"{d.subject}.outer" not in grid:
            continue
        if (
            d.verb == "rasterize"
            and not {f"{d.subject}.outer", f"{d.option('over')}.outer"} <= grid
        ):
            continue
        walked = {
            "causal_bound": (d.subject, d.option("at")),
            "split_k": (d.option("over"),),
            "stream_k": (d.option("over"),),
        }
        if any(f"{i}.outer" not in loops for i in walked.get(d.verb, ())):
            continue
        if d.verb in ("multicast", "keep") and d.option("over") not in loops:
            continue
        if d.verb == "load" and d.option("at") not in ("grid", *loops):
            continue
        if d.verb == "pipeline" and any(o.subject == d.subject for o in schedule.of("keep")):
            continue
        kept.append(d)
    return Schedule(schedule.kernel, tuple(kept))
