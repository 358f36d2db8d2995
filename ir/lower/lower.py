"""Lowers a spec and a schedule to a loop nest, on demand from the stored tensors.

A launch is a chain of scopes: the prologue that runs once, the grid's tile, the loops in it. A
tensor is computed in the outermost scope where all its indices have an origin, when a statement
there first needs it. So loop-invariant values are computed before the loop. A value that two loops
need, without a buffer between them, is computed in both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ir.errors import KernelError
from ir.lower.cooperative import gathered
from ir.lower.frame import frame
from ir.lower.passes import in_passes
from ir.lower.stream_k import streamed
from ir.machine import Machine
from ir.nest.bulk import require_boxes
from ir.nest.effects import idle
from ir.nest.footprint import require_fit
from ir.nest.nest import LoopNest
from ir.nest.pipelines import require_pipelines
from ir.schedule import Schedule
from ir.sizes import bind
from ir.spec import Spec


def lower(spec: Spec, schedule: Schedule, machine: Machine, sizes: Mapping[str, int]) -> LoopNest:
    """The loop nest of a schedule. Raises KernelError if it is illegal or exceeds a memory.

    sizes: the free sizes that the kernel is tuned for; memory capacity is checked at them.
    """
    nest = _lowered(spec, schedule, machine, sizes)
    for _, error in idle(nest.launches, schedule, machine):
        raise error
    return nest


def settled(spec: Spec, schedule: Schedule, machine: Machine, sizes: Mapping[str, int]) -> LoopNest:
    """Like `lower`, but drops decisions without effect from the nest's schedule.

    It serves generated schedules, where one decision can make another one ineffective.
    """
    nest = _lowered(spec, schedule, machine, sizes)
    dropped = [decision for decision, _ in idle(nest.launches, schedule, machine)]
    kept = tuple(d for d in schedule.decisions if d not in dropped)
    return replace(nest, schedule=replace(schedule, decisions=kept)) if dropped else nest


def _lowered(
    spec: Spec, schedule: Schedule, machine: Machine, sizes: Mapping[str, int]
) -> LoopNest:
    found = frame(spec, schedule, machine)
    bound = bind(spec, sizes)
    filled = (in_passes(one.filled(schedule), schedule) for one in found.launches)
    made = [part for one in filled for part in streamed(one, schedule, machine)]
    launches = tuple(gathered(made, schedule, machine, bound))
    require_boxes(launches, schedule, machine, bound)
    require_pipelines(launches, schedule, machine)
    machine.model.require_decided(launches, schedule, machine, bound)
    for launch in launches:
        require_fit(launch, machine, bound)
    return LoopNest(
        spec=spec,
        variant=found.variant,
        schedule=schedule,
        machine=machine.name,
        sizes=tuple(sizes.items()),
        launches=launches,
    )


def fits(spec: Spec, schedule: Schedule, machine: Machine, sizes: Mapping[str, int]) -> bool:
    """Whether a schedule lowers at these sizes, on which memory capacity and bulk copies depend."""
    try:
        lower(spec, schedule, machine, sizes)
    except KernelError:
        return False
    return True
