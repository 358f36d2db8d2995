"""Bulk copies (TMA, DMA): which regions of a tensor a DMA engine can move."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from ir.errors import KernelError
from ir.machine import Machine
from ir.nest.nest import Epilogue, Launch, Load, Loop, Rows, Slice, Store
from ir.schedule import Decision, Schedule
from ir.sizes import power_of_two
from ir.sizes import value as number
from ir.spec import DTYPES, Number

ALIGNED = 16  # bytes: rows of a box and of its tensor are multiples of it


def bulk(schedule: Schedule, tensor: str) -> bool:
    """Whether a schedule has the DMA engine move a tensor."""
    copy = schedule.find("copy", tensor)
    return copy is not None and copy.option("by") == "bulk"


def hint(schedule: Schedule, tensor: str) -> str:
    """What a schedule has the caches told of a tensor; empty: nothing."""
    decision = schedule.find("cache", tensor)
    return str(decision.option("hint")) if decision else ""


def rows_of(schedule: Schedule, tensor: str) -> Rows | None:
    """How a schedule lays a tensor's tile out in shared memory; None where it does not."""
    if decision := schedule.find("swizzle", tensor):
        return Rows(panel=decision.number("bytes"))
    decision = schedule.find("pad", tensor)
    return Rows(padding=decision.number("bytes")) if decision else None


def epilogue_of(schedule: Schedule, tensor: str) -> Epilogue | None:
    """How a schedule has a tensor's tile stored; None where it does not say."""
    decision = schedule.find("epilogue", tensor)
    return Epilogue(str(decision.option("by")), decision.number("columns", 0)) if decision else None


def require_boxes(
    launches: tuple[Launch, ...], schedule: Schedule, machine: Machine, sizes: Mapping[str, int]
) -> None:
    """Raises KernelError where a bulk copy is no box that the machine's engine moves, or where
    nothing loads or stores its tensor."""
    for decision in schedule.of("copy"):
        moves = [
            (launch, s)
            for launch in launches
            for s in launch.statements()
            if isinstance(s, Load | Store) and s.tensor == decision.subject
        ]
        if not moves:
            raise KernelError(
                f"`{decision.subject}` is neither loaded nor stored, so nothing moves it in bulk",
                place=decision.place,
                hint=f"drop {decision}",
            )
        for launch, move in moves:
            if fault := _fault(launch, move, sizes) or _shape(launch, move, machine, sizes):
                raise _refused(decision, fault)


def _refused(decision: Decision, fault: str) -> KernelError:
    return KernelError(
        f"`{decision.subject}` cannot be moved in bulk: {fault}",
        place=decision.place,
        allowed="boxes of a tensor, padded by nothing but zeros",
        hint=f"drop {decision}",
    )


def _fault(launch: Launch, move: Load | Store, sizes: Mapping[str, int]) -> str:
    """Why a region is no box that a DMA engine can move; empty where it is one."""
    if not move.region:
        return "it is a single number"
    for one in move.region:
        if one.rows is not None:
            return "its rows lie where another tensor says"
        if one.step != 1:
            return f"it is read in steps of {one.step}"
        if len(one.terms) > 1 or any(c != 1 for _, c in one.terms):
            return f"it is read through a window over {', '.join(i for i, _ in one.terms)}"
    if isinstance(move, Load) and move.pad:
        return f"what lies out of bounds is {move.pad}"
    return _unaligned(launch, move, sizes) or _shifted(launch, move)


def _shape(launch: Launch, move: Load | Store, machine: Machine, sizes: Mapping[str, int]) -> str:
    """Why a box has a shape that the machine does not move: its tiles are no powers of two where
    the engine needs that, and boxes may be no wider than the machine says."""
    for one in move.region:
        tile = dict(launch.tiles).get(one.terms[0][0], 0) if one.terms else 0
        if machine.model.boxes_are_powers_of_two and tile and tile != power_of_two(tile):
            return f"its tile has {tile} elements along {one.axis}, which is no power of two"
        width = power_of_two(_extent(launch, move, one, sizes))
        if machine.box and width > machine.box:
            return f"its box has {width} elements along {one.axis}, more than {machine.box}"
    return _slots(launch, move, machine, sizes)


def _slots(launch: Launch, move: Load | Store, machine: Machine, sizes: Mapping[str, int]) -> str:
    """Why the stages of a pipelined box do not all start where the engine can write; empty where
    they do: they lie one after the other."""
    if launch.value(move.value).stages == 1:
        return ""
    dtype = next(p.dtype for p in launch.parameters if p.name == move.tensor)
    held = DTYPES[dtype] * prod(
        power_of_two(_extent(launch, move, one, sizes)) for one in move.region
    )
    if held % machine.model.box_slot_bytes:
        return f"a stage of it has {held} bytes, no multiple of {machine.model.box_slot_bytes}"
    return ""


def _shifted(launch: Launch, move: Load | Store) -> str:
    """Why rows of a box do not start at multiples of ALIGNED bytes; empty where they do."""
    last = move.region[-1]
    if last.axis is None:
        return ""
    for s in launch.statements():
        if isinstance(s, Loop) and s.low.tensor and s.index in dict(last.terms):
            return f"its rows begin where `{s.low.tensor}` says"
    offset = last.offset.value if isinstance(last.offset, Number) else 0
    width = DTYPES[next(p.dtype for p in launch.parameters if p.name == move.tensor)]
    if offset * width % ALIGNED:
        return f"its rows begin {offset * width} bytes aside, no multiple of {ALIGNED}"
    return ""


def _unaligned(launch: Launch, move: Load | Store, sizes: Mapping[str, int]) -> str:
    parameter = next(p for p in launch.parameters if p.name == move.tensor)
    width = DTYPES[parameter.dtype]
    row = width * number(parameter.shape[-1], sizes)
    box = width * _extent(launch, move, move.region[-1], sizes)
    for what, count in (("a row of it has", row), ("a row of its tile has", box)):
        if count % ALIGNED:
            return f"{what} {count} bytes, which is no multiple of {ALIGNED}"
    return ""


def _extent(launch: Launch, move: Load | Store, one: Slice, sizes: Mapping[str, int]) -> int:
    if one.axis is None:
        return 1
    axes = launch.value(move.value).axes
    return number(next(a.extent for a in axes if a.name == one.axis), sizes)
