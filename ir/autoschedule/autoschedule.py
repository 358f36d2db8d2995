"""Makes seed schedules: the autoschedule, schedules of other algorithms, and the plain schedule."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import product
from typing import cast

from ir.autoschedule.seeds import reduced_by, tiled
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.lower.verb_table import canonical
from ir.machine import Cost, Machine
from ir.schedule import Decision, Schedule
from ir.spec import Spec
from ir.variant.atomic import facts_with_places
from ir.variant.variant import formulate


def autoschedule(
    spec: Spec,
    machine: Machine,
    sizes: Mapping[str, int],
    rounded: Collection[str] = (),
    cost: Cost | None = None,
) -> Schedule:
    """The best seed schedule by the quick cost, made by the machine's class.

    Raises KernelError if the spec cannot be lowered at all.

    rounded: f32 contractions whose operands may be rounded to tf32 if the machine has it. Others
        use 3xTF32 where that pays.
    cost: replaces the quick cost, in microseconds, on machines whose class uses it.
    """
    return machine.model.seed(spec, machine, sizes, rounded, cost)


def alternatives(spec: Spec, machine: Machine, sizes: Mapping[str, int]) -> tuple[Schedule, ...]:
    """Seed schedules that use other algorithms than the autoschedule.

    Raises KernelError if the spec cannot be lowered at all.
    """
    return machine.model.alternatives(spec, machine, sizes)


def plain(spec: Spec, machine: Machine, sizes: Mapping[str, int]) -> Schedule:
    """A naive schedule: one launch per equation, one row per tile, nothing prefetched.

    A row that does not fit becomes a loop over tiles, first along reduction axes. A tensor that is
    stored into a part of a larger one shares a launch with its readers.
    """
    # The expansion of a reverse scan can inline the equations that it reads, which then have no
    # launch.
    left = {e.target for e in formulate(spec, Schedule(spec.name)).equations} - _until_read(spec)
    ends = tuple(Decision("kernel", e.target) for e in spec.equations[:-1] if e.target in left)
    taps = machine.model.single_indices(spec)
    facts = facts_with_places(spec)
    reduced = {i for e in spec.equations for i in reduced_by(e.value)}
    rows = {i for e in spec.equations for i in (e.indices[:-1] or e.indices) if i not in reduced}
    legal: Schedule | None = None
    fault: KernelError | None = None
    # Tile sizes of the other axes and of the reduction axes; 0 leaves an axis whole.
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
        legal = legal or schedule  # too large for the machine, but better than none
    if legal is None:
        raise cast(KernelError, fault)
    return legal


def _until_read(spec: Spec) -> set[str]:
    """The targets from a part of a larger tensor on to the last equation that reads it: no launch may end
    after one of these, as a later one would load the part, which is only stored."""
    parts = {t.name for t in spec.outputs if t.part is not None}
    found: set[str] = set()
    for n, e in enumerate(spec.equations):
        if e.target in parts:
            readers = [m for m, other in enumerate(spec.equations) if e.target in other.sources()]
            found |= {other.target for other in spec.equations[n : max(readers, default=n)]}
    return found
