"""The autoschedule: a good first schedule for any spec on any machine, and a plain one.

The machine's class makes the first; a search starts from it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import product

from ir.autoschedule.seeds import reduced_by, tiled
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.lower.verbs import canonical
from ir.machine import Cost, Machine
from ir.schedule import Decision, Schedule
from ir.spec import Spec
from ir.variant.atomic import facts_with_places


def autoschedule(
    spec: Spec,
    machine: Machine,
    sizes: Mapping[str, int],
    rounded: Collection[str] = (),
    cost: Cost | None = None,
) -> Schedule:
    """The best of a set of schedules by the quick cost; raises KernelError where the spec cannot be
    lowered at all.

    rounded: sums of products of f32 whose operands may be rounded to tf32, where the machine has
    it; others are products of three there, about as exact as f32, where that is worth it.  cost:
    judges nests in place of the quick cost, on machines whose class asks it: microseconds.
    """
    return machine.model.seed(spec, machine, sizes, rounded, cost)


def plain(spec: Spec, machine: Machine, sizes: Mapping[str, int]) -> Schedule:
    """What one would write first: a launch per equation, one row a tile, nothing staged ahead.

    A row that does not fit is walked in a loop of tiles, along what is reduced first.
    """
    ends = tuple(Decision("kernel", e.target) for e in spec.equations[:-1])
    taps = machine.model.single_indices(spec)
    facts = facts_with_places(spec)
    reduced = {i for e in spec.equations for i in reduced_by(e.value)}
    rows = {i for e in spec.equations for i in (e.indices[:-1] or e.indices) if i not in reduced}
    legal, fault = None, None
    for kept, summed in product((0, 128, 32, 8, 1), (0, 128, 32, 8, 1)):
        tiles: list[Decision] = []
        for name, span in facts.ranges.items():
            size = summed if name in reduced else kept
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
        if machine.model.holds(nest, machine, sizes):
            return schedule
        legal = legal or schedule
    if legal is None:
        raise fault
    return legal
