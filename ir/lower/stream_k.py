"""Stream-K: the blocks of a persistent launch share the K-loop iterations of all tiles equally.

before: block 0 computes tiles 0, 132, 264, ...; in the last wave most blocks have none
after:  each block has as many iterations of `for k in tiles: acc += x @ w`, wherever tiles end

A block that does not finish a tile stores its partial sum in a workspace. The block with the tile's
last iteration adds the partial sums. The launch before clears the flags that say which are there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ir.errors import KernelError
from ir.machine import Machine
from ir.nest.nest import (
    Axis,
    Dot,
    Fill,
    Launch,
    Loop,
    Parameter,
    Slice,
    Store,
    StreamK,
    Value,
)
from ir.schedule import Decision, Schedule
from ir.spec import Index, Number

# the dtype of flags and of block numbers, on which memory must support atomic addition
COUNTED = "i32"
LEAST = 16  # elements along each axis of a matmul's result
DTYPE = "f32"  # accumulator dtype of the shared sum


def streamed(launch: Launch, schedule: Schedule, machine: Machine) -> Iterator[Launch]:
    """Yields a launch with its workspace, after the launch that clears it; others are unchanged.

    Raises KernelError if the blocks cannot share the loop that the schedule names.
    """
    if launch.stream_k is None:
        yield launch
        return
    stored = [s.tensor for s in launch.statements() if isinstance(s, Store)]
    decision = next(d for d in schedule.of("stream_k") if d.subject in stored)
    found = _sum(launch, machine, decision)
    taken = {p.name for p in launch.parameters} | {v.name for v in launch.values}
    made = StreamK(launch.stream_k.index, found.name, f"{found.name}_partial", f"{found.name}_flag")
    for name in {made.partials, made.flags, f"{made.flags}_block"} & taken:
        raise KernelError(
            f"`{decision}` would make a second `{name}`",
            place=decision.place,
            hint="rename that one in the spec",
        )
    blocks, tiles = machine.parallel * launch.resident, dict(launch.tiles)
    shape = (blocks, *(tiles[a] for a in found.names if tiles[a] > 1))
    partials = Parameter(made.partials, found.dtype, tuple(map(Number, shape)), "workspace")
    flags = Parameter(made.flags, COUNTED, (Number(blocks + 1),), "workspace")
    inputs = [p for p in launch.parameters if p.role == "input"]
    others = [p for p in launch.parameters if p.role != "input"]
    yield _cleared(launch, flags)
    yield replace(launch, parameters=(*inputs, partials, flags, *others), stream_k=made)


def _cleared(launch: Launch, flags: Parameter) -> Launch:
    """The launch that fills the flags with zeros."""
    index, name = f"{flags.name}_block", flags.name
    (size,) = flags.shape
    return Launch(
        name=f"{launch.name}_clear",
        parameters=(flags,),
        sizes=launch.sizes,
        grid=(),
        values=(Value(name, name, flags.dtype, (Axis(index, size),)),),
        once=(),
        body=(Fill(name, 0), Store(name, (Slice(index, ((index, 1),), Number(0)),), name)),
        tiles=(),
        whole=((index, size),),
    )


def _sum(launch: Launch, machine: Machine, decision: Decision) -> Value:
    """The sum whose loop the blocks share. Raises KernelError if they cannot share it."""
    index = str(decision.option("over"))
    loops = [s for s in launch.statements() if isinstance(s, Loop)]
    why = _unfit(launch, machine)
    if why:
        pass
    elif [s.index for s in loops] != [index] or loops[0] not in launch.body:
        why = f"it has not just one loop, over `{index}`, for each tile"
    elif not _whole(loops[0]):
        why = f"its loop over `{index}` does not run through all of `{index}` for each tile"
    elif (held := _carried(launch, loops[0])) is None:
        why = "its loop adds to something else than one sum on the matrix unit"
    elif held.dtype != DTYPE:
        why = f"`{held.name}` is summed in {held.dtype}, not {DTYPE}"
    elif wrong := [a for a in held.names if not _fits(dict(launch.tiles).get(a, 0))]:
        why = f"the tile of `{wrong[0]}` is no power of two from {LEAST} on, and not 1"
    else:
        return held
    raise KernelError(
        f"the blocks of `{launch.name}` cannot share the iterations over `{index}`: {why}",
        place=decision.place,
        allowed="a persistent launch with one sum on the matrix unit, over one loop, in tiles of its "
        "own grid",
        hint=f"drop {decision}, or add persistent({decision.subject}, programs=1)",
    )


def _unfit(launch: Launch, machine: Machine) -> str:
    """Why a launch as a whole cannot use stream-K; empty if it can."""
    if COUNTED not in machine.atomics:
        return f"memory of `{machine.name}` does not add to {COUNTED}, which counts the blocks"
    if not launch.resident:
        return "they have one tile each, and are no persistent ones"
    if launch.cluster:
        return "they form clusters, which have whole tiles"
    return "they run again for each step of a recurrence" if launch.repeat else ""


def _carried(launch: Launch, loop: Loop) -> Value | None:
    """The sum that a loop adds matmuls to; None if the loop carries anything else."""
    inside = [s for s in launch.statements() if s in loop.body]
    begun = {s.value for s in launch.statements() if isinstance(s, Fill) and s not in inside}
    written = {getattr(s, name, "") for s in inside for name in ("value", "carry")}
    sums = [s for s in inside if isinstance(s, Dot) and s.accumulate]
    if len(sums) != 1 or begun & written != {sums[0].value}:
        return None
    others = [s for s in inside if s is not sums[0] and getattr(s, "value", "") == sums[0].value]
    return None if others else launch.value(sums[0].value)


def _fits(tile: int) -> bool:
    """Whether a tile's size is 1, or a power of two that the workspace can hold."""
    return tile == 1 or tile >= LEAST and not tile & (tile - 1)


def _whole(loop: Loop) -> bool:
    """Whether a loop has the same iterations for all tiles, starting at 0."""
    low, high = loop.low.size, loop.high.size
    if low != Number(0) or high is None or loop.backwards:
        return False
    return not any(isinstance(n, Index) for n in high.walk())
