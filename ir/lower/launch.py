"""Builds the launch of a segment, with open tile sizes."""

from __future__ import annotations

from collections.abc import Mapping

from ir.errors import KernelError
from ir.lower.launches import Segment, Tiling
from ir.lower.program import Program
from ir.lower.tile_sizes import OpenLaunch, OpenTile, told_apart
from ir.lower.verb_table import OF_LAUNCH
from ir.machine import Machine
from ir.memo import Recent
from ir.nest.nest import GridAxis, Launch, Load, Parameter, Repeat, parameter
from ir.recurrence import Recurrence
from ir.schedule import Decision, Schedule
from ir.sizes import free_sizes
from ir.spec import Facts, Spec, Tensor

MOST = 256  # launches that are cached for a segment
SEGMENTS = 32  # segments whose launches are cached
# Verbs that do not affect the inside of a launch: they end launches, set tilings, or decide on a
# launch as a whole.
AROUND = ("kernel", "tile", "place", "rasterize", *OF_LAUNCH)
OF_TENSOR = ("pipeline", "copy")  # verbs that change nothing if their tensor is not used
_LAUNCHES: Recent[Segment, Recent[Machine, OpenLaunch]] = Recent(SEGMENTS)


def launch(
    spec: Spec,
    facts: Facts,
    schedule: Schedule,
    machine: Machine,
    segment: Segment,
    cut: Mapping[str, Tiling],
) -> OpenLaunch:
    """The launch of a segment, built once for all schedules with the same decisions inside it."""
    found = _remembered(spec, facts, schedule, machine, segment, cut)
    return found.having(machine.model.launch_fields(schedule, segment, cut))


def _remembered(
    spec: Spec,
    facts: Facts,
    schedule: Schedule,
    machine: Machine,
    segment: Segment,
    cut: Mapping[str, Tiling],
) -> OpenLaunch:
    if not schedule.exact():
        return _built(spec, facts, schedule, machine, segment, cut)
    told = told_apart(segment.equations, schedule)
    tiles = tuple(
        [
            (c.index, c.level, c.decided or c.tile, c.decided in told and c.tile)
            for c in cut.values()
        ]
    )
    key = (tiles, *[d for d in schedule.decisions if _inside(d, segment)])
    known = _LAUNCHES.get(segment, None) or _LAUNCHES.put(segment, None, Recent(MOST))
    return known.get(machine, key) or known.put(
        machine, key, _built(spec, facts, schedule, machine, segment, cut)
    )


def _inside(decision: Decision, segment: Segment) -> bool:
    """Whether a decision can change the inside of a segment's launch."""
    if decision.verb in OF_TENSOR:
        return decision.subject in segment.tensors()
    return decision.verb not in AROUND


def _built(
    spec: Spec,
    facts: Facts,
    schedule: Schedule,
    machine: Machine,
    segment: Segment,
    cut: Mapping[str, Tiling],
) -> OpenLaunch:
    program = Program(spec, facts, schedule, machine, segment, cut)
    program.build()
    grid = tuple(GridAxis(c.index, c.tile, c.range.high) for c in cut.values() if c.level == "grid")
    tiles = tuple(OpenTile(c.index, c.tile, c.decided) for c in cut.values() if c.tile)
    made = Launch(
        name=segment.name,
        parameters=_parameters(spec, facts, segment, program.touched),
        sizes=(*free_sizes(spec), *(name for name, _ in spec.derived)),
        grid=grid,
        values=tuple(program.values.values()),
        once=program.once,
        body=program.body,
        tiles=tuple((t.index, t.size) for t in tiles),
        whole=tuple((c.index, c.range.high) for c in cut.values() if not c.tile),
        repeat=_repeat(segment.recurrence, facts),
    )
    _require_unread(made, spec)
    return OpenLaunch(made, tiles)


def _require_unread(launch: Launch, spec: Spec) -> None:
    """Raises KernelError if a launch loads a part of a larger tensor, which can only be stored."""
    parts = {t.name for t in spec.outputs if t.part is not None}
    for s in launch.statements() if parts else ():
        if isinstance(s, Load) and s.tensor in parts:
            raise KernelError(
                f"`{launch.name}` reads `{s.tensor}` from memory, a part of a larger tensor",
                allowed="what one launch computes, or an output that is a tensor of its own",
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
        tensor, role = declared.get(name, facts.tensors[name]), roles.get(name, "workspace")
        made.append(parameter(tensor, role))
    rank = ("input", "workspace", "output")
    return tuple(sorted(made, key=lambda p: rank.index(p.role)))
