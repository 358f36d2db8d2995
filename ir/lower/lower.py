"""Lowering of a spec and a schedule to a loop nest, driven by demand from what is stored.

A launch is a chain of scopes: the prologue that runs once, the grid's tile, the loops in it. A
tensor is computed in the outermost scope where all its indices have an origin, when something first
asks for it there. So loop-invariant values stand before the loop, and a value that two loops need
without a buffer between them is computed in both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ir.errors import KernelError
from ir.lower.launches import Segment, Tiling, segments, tilings
from ir.lower.program import Program
from ir.lower.verbs import require_legal
from ir.machine import Machine
from ir.nest.bulk import require_boxes
from ir.nest.effects import idle
from ir.nest.footprint import require_fit
from ir.nest.nest import GridAxis, Launch, LoopNest, Parameter, Repeat
from ir.nest.pipelines import require_pipelines
from ir.recurrence import Recurrence
from ir.schedule import Schedule
from ir.sizes import bind, free_sizes
from ir.spec import Facts, Spec, Tensor
from ir.variant.atomic import facts_with_places
from ir.variant.narrow import require_range
from ir.variant.variant import formulate


def lower(spec: Spec, schedule: Schedule, machine: Machine, sizes: Mapping[str, int]) -> LoopNest:
    """The loop nest of a schedule; KernelError where it is not legal or does not fit.

    sizes: the free sizes that the kernel is tuned for. Memory capacity is checked at them.
    """
    nest = _lowered(spec, schedule, machine, sizes)
    for _, error in idle(nest.launches, schedule):
        raise error
    return nest


def settled(spec: Spec, schedule: Schedule, machine: Machine, sizes: Mapping[str, int]) -> LoopNest:
    """As `lower`, but decisions that change nothing are left out of the nest's schedule. For
    schedules that are made up, where one decision may take the effect from another."""
    nest = _lowered(spec, schedule, machine, sizes)
    dropped = [decision for decision, _ in idle(nest.launches, schedule)]
    kept = tuple(d for d in schedule.decisions if d not in dropped)
    return replace(nest, schedule=replace(schedule, decisions=kept)) if dropped else nest


def _lowered(
    spec: Spec, schedule: Schedule, machine: Machine, sizes: Mapping[str, int]
) -> LoopNest:
    require_legal(spec, schedule, machine)
    require_range(spec, schedule, machine)
    variant = formulate(spec, schedule)
    facts = facts_with_places(variant)
    bound = bind(spec, sizes)
    parts = segments(variant, schedule)
    cut = tuple(
        tilings(segment, facts, schedule, machine.model.copies_fill_grid) for segment in parts
    )
    machine.model.require_met(schedule, parts, cut)
    launches = tuple(
        _launch(variant, facts, schedule, machine, segment, one)
        for segment, one in zip(parts, cut, strict=True)
    )
    require_boxes(launches, schedule, machine, bound)
    require_pipelines(launches, schedule, machine)
    for launch in launches:
        require_fit(launch, machine, bound)
    return LoopNest(
        spec=spec,
        variant=variant,
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


def _launch(
    spec: Spec,
    facts: Facts,
    schedule: Schedule,
    machine: Machine,
    segment: Segment,
    cut: Mapping[str, Tiling],
) -> Launch:
    program = Program(spec, facts, schedule, machine, segment, cut)
    program.build()
    grid = tuple(GridAxis(c.index, c.tile, c.range.high) for c in cut.values() if c.level == "grid")
    return Launch(
        name=segment.name,
        parameters=_parameters(spec, facts, segment, program.touched),
        sizes=(*free_sizes(spec), *(name for name, _ in spec.derived)),
        grid=grid,
        values=tuple(program.values.values()),
        once=program.once,
        body=program.body,
        tiles=tuple((c.index, c.tile) for c in cut.values() if c.tile),
        whole=tuple((c.index, c.range.high) for c in cut.values() if not c.tile),
        **machine.model.launch_fields(schedule, segment, cut),
        repeat=_repeat(segment.recurrence, facts),
    )


def _repeat(step: Recurrence | None, facts: Facts) -> Repeat | None:
    if step is None:
        return None
    return Repeat(step.index, facts.ranges[step.index].high, step.targets[0], step.backwards)


def _parameters(
    spec: Spec, facts: Facts, segment: Segment, touched: tuple[str, ...]
) -> tuple[Parameter, ...]:
    """The global tensors of a launch: inputs, then workspace, then outputs."""
    roles = {t.name: "input" for t in spec.inputs} | {t.name: "output" for t in spec.outputs}
    declared: dict[str, Tensor] = {t.name: t for t in (*spec.inputs, *spec.outputs)}
    made = []
    for name in dict.fromkeys((*touched, *segment.stored)):
        tensor = declared.get(name, facts.tensors[name])
        made.append(Parameter(name, tensor.dtype, tensor.shape, roles.get(name, "workspace")))
    rank = ("input", "workspace", "output")
    return tuple(sorted(made, key=lambda p: rank.index(p.role)))
