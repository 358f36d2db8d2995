"""Changes of the algorithm variant: reassociation, unrolling, split-K, layouts and others."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from ir.errors import KernelError
from ir.lower.launches import Segment, segments
from ir.machine import Machine
from ir.schedule import Decision, Schedule
from ir.spec import Spec
from ir.variant.associate import associable
from ir.variant.atomic import WIDE, scattered
from ir.variant.derived import ends
from ir.variant.flatten import flatten
from ir.variant.masks import masked_at
from ir.variant.pack import dimensions
from ir.variant.split_k import REDUCTIONS
from ir.variant.unroll import terms
from ir.verify import facts

PARTS = (2, 4, 8, 16, 32)

Change = tuple[Decision | None, Decision | None]  # old and new; None if there is none


def variant_changes(
    spec: Spec, formed: Spec, schedule: Schedule, machine: Machine
) -> Iterator[Change]:
    """Every single change of the decisions that add tensors or indices, in a fixed order.

    formed: the spec rewritten by the schedule's own decisions of this kind.
    """
    changes = {
        "associate": _associations(spec, schedule),
        "unroll": _unrolled(spec, schedule),
        "flatten": _flattens(formed, schedule),
        "split_k": _splits(spec, schedule),
        "causal_bound": _cuts(spec, schedule),
        "pack": _layouts(spec, formed, schedule),
        "atomic": _atomics(spec, schedule, machine),
    }
    for verb, found in changes.items():
        if verb in machine.model.verbs:
            yield from found


def launches(formed: Spec, schedule: Schedule) -> tuple[Segment, ...]:
    """The launches of a schedule; none if a launch would end where none can."""
    try:
        return segments(formed, schedule)
    except KernelError:
        return ()


def _flattens(formed: Spec, schedule: Schedule) -> Iterator[Change]:
    """Flattening of adjacent indices of outputs."""
    returned = [formed.equation(t.name).indices for t in formed.outputs]
    for outer, inner in dict.fromkeys(pair for names in returned for pair in pairwise(names)):
        new = Decision("flatten", outer, (("inner", inner),))
        try:
            facts(flatten(formed, new))
        except KernelError:
            continue
        yield None, new
    for old in schedule.of("flatten"):
        yield old, None


def _associations(spec: Spec, schedule: Schedule) -> Iterator[Change]:
    """Reassociation of chained contractions."""
    for target in associable(spec):
        new = Decision("associate", target)
        old = schedule.find("associate", target)
        yield (old, None) if old else (None, new)


def _unrolled(spec: Spec, schedule: Schedule) -> Iterator[Change]:
    """Unrolling of short reductions."""
    for index in facts(spec).ranges:
        old = schedule.find("unroll", index)
        if old or terms(spec, index):
            yield (old, None) if old else (None, Decision("unroll", index))


def _splits(spec: Spec, schedule: Schedule) -> Iterator[Change]:
    """Split-K of reductions over a tiled index, with other numbers of parts."""
    ranges = facts(spec).ranges
    for e in spec.equations:
        old = schedule.find("split_k", e.target)
        for over in e.reduced:
            fine = schedule.find("tile", over) and not ranges[over].jagged
            along = old if old and old.option("over") == over else None
            for parts in _parts(along) if fine and e.reduce.reduction in REDUCTIONS else ():
                new = Decision("split_k", e.target, (("over", over), ("parts", parts)))
                if new != old:
                    yield old, new
        if old:
            yield old, None


def _parts(old: Decision | None) -> list[int]:
    """Numbers of parts: a few fixed ones, and those near the current number, which can be
    thousands."""
    if old is None:
        return list(PARTS)
    now = int(str(old.option("parts")))
    near = (now // 8, now // 4, now // 2, 2 * now, 4 * now, 8 * now)
    return sorted({*PARTS, now, *(n for n in near if n > 1)})


def _cuts(spec: Spec, schedule: Schedule) -> Iterator[Change]:
    """Causal loop bounds of reductions with a mask."""
    for index in dict.fromkeys(i for e in spec.equations for i in e.reduced):
        old = schedule.find("causal_bound", index)
        for at in masked_at(spec, index):
            tiled = schedule.find("tile", index) and schedule.find("tile", at)
            new = Decision("causal_bound", index, (("at", at),))
            if tiled and new != old:
                yield old, new
        if old:
            yield old, None


def _layouts(spec: Spec, formed: Spec, schedule: Schedule) -> Iterator[Change]:
    """Other contiguous dimensions of inputs and of tensors that one launch passes to another."""
    apart = {t.name for t in formed.outputs} | set(ends(schedule))
    passed = [t for s in launches(formed, schedule) for t in s.stored if t not in apart]
    decided = [d.subject for d in schedule.of("pack")]
    for name in dict.fromkeys((*(t.name for t in spec.inputs), *passed, *decided)):
        if old := schedule.find("pack", name):
            yield old, None
            continue
        names = dimensions(formed, name)
        for last in names[:-1]:
            order = "_".join((*(n for n in names if n != last), last))
            yield None, Decision("pack", name, (("order", order),))


def _atomics(spec: Spec, schedule: Schedule, machine: Machine) -> Iterator[Change]:
    """Scatters by atomic addition, or by gathering."""
    tensors = facts(spec).tensors
    for target in scattered(spec):
        old = schedule.find("atomic", target)
        dtype = tensors[target].dtype
        if old or dtype in machine.atomics and dtype in WIDE:
            yield (old, None) if old else (None, Decision("atomic", target))
