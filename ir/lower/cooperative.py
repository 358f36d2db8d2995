"""Cooperative launches: the thread blocks of one launch run all steps of a recurrence.

before: for each step, a launch: h = f(x, h of the step before)
after:  one launch: for each step: h = f(x, h of the step before), then a grid barrier

The barrier uses flags in global memory: after each step a block sets its own flag, and waits for
the flags of all other blocks. The launch before clears the flags. All blocks must run at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ir.errors import KernelError
from ir.machine import Machine
from ir.nest.nest import (
    Axis,
    Fill,
    GridAxis,
    Launch,
    Load,
    Meeting,
    Parameter,
    Slice,
    Store,
    Value,
)
from ir.schedule import Decision, Schedule
from ir.spec import Apply, Expr, Number

FLAG = "i32"  # the dtype of flags
CLEARED = 1024  # flags that one block clears


def gathered(
    launches: Sequence[Launch], schedule: Schedule, machine: Machine, sizes: Mapping[str, float]
) -> Iterator[Launch]:
    """Adds the flags of cooperative launches, and the launches that clear them.

    Raises KernelError if the blocks of a launch cannot run all steps.

    sizes: all sizes of the spec.
    """
    for launch in launches:
        if launch.meeting is None:
            yield launch
            continue
        stored = {s.tensor for s in launch.statements() if isinstance(s, Store)}
        decision = next(d for d in schedule.of("cooperative") if d.subject in stored)
        _require_steps(launch, launches, machine, sizes, decision)
        assert launch.repeat is not None, "asked before"
        name = f"{launch.repeat.of}_met"
        if name in {p.name for p in launch.parameters} | {v.name for v in launch.values}:
            raise KernelError(
                f"`{decision}` would make a second `{name}`",
                place=decision.place,
                hint="rename that one in the spec",
            )
        flags = Parameter(name, FLAG, (_times(launch.repeat.size, machine.parallel),), "workspace")
        inputs = [p for p in launch.parameters if p.role == "input"]
        others = [p for p in launch.parameters if p.role != "input"]
        yield _cleared(launch, flags)
        yield replace(launch, parameters=(*inputs, flags, *others), meeting=Meeting(name))


def _cleared(launch: Launch, flags: Parameter) -> Launch:
    """The launch that fills the flags with zeros."""
    index, name = f"{flags.name}_number", flags.name
    (size,) = flags.shape
    region = (Slice(index, ((index, 1),), Number(0)),)
    return Launch(
        name=f"{launch.name}_clear",
        parameters=(flags,),
        sizes=launch.sizes,
        grid=(GridAxis(index, CLEARED, size),),
        values=(Value(name, name, flags.dtype, (Axis(index, Number(CLEARED)),)),),
        once=(),
        body=(Fill(name, 0), Store(name, region, name)),
        tiles=((index, CLEARED),),
        whole=(),
    )


def _require_steps(
    launch: Launch,
    launches: Sequence[Launch],
    machine: Machine,
    sizes: Mapping[str, float],
    decision: Decision,
) -> None:
    """Raises KernelError if the blocks of a launch cannot run all steps."""
    tiles = launch.grid_tiles(sizes)  # type: ignore[arg-type]
    moved = (s for s in launch.statements() if isinstance(s, Load | Store))
    if launch.repeat is None:
        why = "it is no step of a recurrence"
    elif sum(one.repeat == launch.repeat for one in launches) > 1:
        why = "a step has several launches"
    elif tiles > machine.parallel:
        why = f"its {tiles} blocks do not run at once: there are {machine.parallel} processors"
    elif launch.resident or launch.cluster or launch.roles:
        why = "blocks have more than one tile, form clusters or have roles"
    elif any(s.bulk for s in moved):
        why = "the DMA engine does not see what other blocks stored"
    else:
        return
    raise KernelError(
        f"the blocks of `{launch.name}` cannot run all steps: {why}",
        place=decision.place,
        allowed="the one launch of a step, with at most a block for each processor, one tile each",
        hint=f"drop {decision}, or have larger tiles on the grid",
    )


def _times(size: Expr, number: int) -> Expr:
    if isinstance(size, Number):
        return Number(int(size.value) * number)
    return Apply("mul", (size, Number(number)))
