"""Bulk copies (TMA, DMA): decides which regions of a tensor a DMA engine can move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod

from ir.errors import KernelError
from ir.machine import DIRECT, WINDOW, Machine
from ir.memo import by_parts
from ir.nest.nest import Epilogue, Launch, Load, Loop, Rows, Slice, Store
from ir.schedule import Decision, Schedule
from ir.sizes import power_of_two
from ir.sizes import value as number
from ir.spec import DTYPES, Index, Number

ALIGNED = 16  # bytes: rows of a box and of its tensor are multiples of it
DIRECT_PANEL = 16  # bytes of the panels of tiles that direct copies to shared memory fill


def bulk(schedule: Schedule, tensor: str) -> bool:
    """Whether a schedule has the DMA engine move a tensor."""
    copy = schedule.find("copy", tensor)
    return copy is not None and copy.option("by") == "bulk"


def hint(schedule: Schedule, tensor: str) -> str:
    """The cache hint that a schedule gives a tensor; empty if none."""
    decision = schedule.find("cache", tensor)
    return str(decision.option("hint", "")) if decision else ""


def shared(s: Load, index: str) -> bool:
    """Whether a bulk copy is of the same region for all tiles of an index.

    A cluster of thread blocks then copies it once (multicast).
    """
    return s.bulk and not any(depends(one, index) for one in s.region)


@by_parts("values", "once", "body")
def later_taps(launch: Launch) -> frozenset[str]:
    """The values that read a window which another value's load brings: all filter taps but the
    first."""
    seen: set[str] = set()
    found: set[str] = set()
    for s in (x for x in launch.statements() if isinstance(x, Load)):
        rows = launch.value(s.value).rows
        if rows is not None and rows.window:
            found |= {s.value} if s.tensor in seen else set()
            seen.add(s.tensor)
    return frozenset(found)


def depends(one: Slice, index: str) -> bool:
    """Whether positions differ between tiles of an index."""
    named = (n for n in one.offset.walk() if isinstance(n, Index) and n.name == index)
    return index in dict(one.terms) or any(named)


def rows_of(schedule: Schedule, tensor: str) -> Rows | None:
    """The layout in shared memory that a schedule gives a tensor's tile; None if it gives none."""
    copy = schedule.find("copy", tensor)
    if copy is not None and copy.option("by") == DIRECT:
        return Rows(panel=DIRECT_PANEL, direct=True)
    window = copy is not None and copy.option("by") == WINDOW
    if decision := schedule.find("swizzle", tensor):
        return Rows(panel=decision.number("bytes"), window=window)
    if decision := schedule.find("pad", tensor):
        return Rows(padding=decision.number("bytes"), window=window)
    return Rows(window=True) if window else None


def epilogue_of(schedule: Schedule, tensor: str) -> Epilogue | None:
    """The epilogue that a schedule gives a tensor's tile; None if it gives none."""
    decision = schedule.find("epilogue", tensor)
    return Epilogue(str(decision.option("by")), decision.number("columns", 0)) if decision else None


def require_boxes(
    launches: tuple[Launch, ...], schedule: Schedule, machine: Machine, sizes: Mapping[str, int]
) -> None:
    """Raises KernelError if a copy decision is illegal.

    A bulk copy must be a box that the machine's engine moves, and some statement must load or store
    its tensor.
    """
    for decision in schedule.of("copy"):
        moves = [
            (launch, s)
            for launch in launches
            for s in launch.statements()
            if isinstance(s, Load | Store) and s.tensor == decision.subject
        ]
        if not moves:
            raise KernelError(
                f"`{decision.subject}` is neither loaded nor stored, so nothing moves it",
                place=decision.place,
                hint=f"drop {decision}",
            )
        if decision.option("by") == DIRECT:
            _require_direct(decision, [move for _, move in moves])
            continue
        if decision.option("by") == WINDOW:
            _require_window(decision, moves)
            continue
        for launch, move in moves:
            steps = machine.model.box_steps
            if fault := _fault(launch, move, sizes, steps) or _shape(launch, move, machine, sizes):
                raise _refused(decision, fault)


def _require_direct(decision: Decision, moves: Sequence[Load | Store]) -> None:
    """Raises KernelError if a direct copy to shared memory is a store, or pads with a value other
    than 0."""
    stored = any(isinstance(move, Store) for move in moves)
    if stored or any(isinstance(move, Load) and move.pad for move in moves):
        what = "is stored" if stored else "has another value than 0 out of bounds"
        raise KernelError(
            f"`{decision.subject}` {what}, and such copies fill shared memory",
            place=decision.place,
            allowed="tensors that are loaded, with 0 out of bounds",
            hint=f"drop {decision}",
        )


def _require_window(decision: Decision, moves: Sequence[tuple[Launch, Load | Store]]) -> None:
    """Raises KernelError if no launch loads a tensor at several places, or if one stores it."""
    loads = Counter(launch.name for launch, move in moves if isinstance(move, Load))
    stored = any(isinstance(move, Store) for _, move in moves)
    if stored or max(loads.values(), default=0) < 2:
        what = "is stored" if stored else "is loaded at one place alone"
        raise KernelError(
            f"`{decision.subject}` {what}, so there is no window of several taps",
            place=decision.place,
            allowed="tensors that a launch loads at shifted places, as the taps of `unroll(i)`",
            hint=f"drop {decision}",
        )


def _refused(decision: Decision, fault: str) -> KernelError:
    return KernelError(
        f"`{decision.subject}` cannot be moved in bulk: {fault}",
        place=decision.place,
        allowed="boxes of a tensor, padded by nothing but zeros",
        hint=f"drop {decision}",
    )


def _fault(launch: Launch, move: Load | Store, sizes: Mapping[str, int], steps: int) -> str:
    """Why a region is no box that a DMA engine can move; empty if it is one."""
    if not move.region:
        return "it is a single number"
    for one in move.region:
        if one.rows is not None:
            return "its rows lie where another tensor says"
        if fault := _window(launch, one, steps, one is move.region[-1]):
            return fault
    if isinstance(move, Load) and move.pad:
        return f"what lies out of bounds is {move.pad}"
    return _unaligned(launch, move, sizes) or _shifted(launch, move) or _beyond(launch, move, sizes)


def _window(launch: Launch, one: Slice, steps: int, last: bool) -> str:
    """Why the positions along a dimension form no box; empty if they do.

    A window of one filter tap at a time is legal: the tap's index only moves the origin of the box.

    steps: the largest stride of positions.
    """
    over = wide(launch, one)
    step = over[0][1] if over else 1
    if len(over) > 1 or len(one.terms) > 1 and (last or not steps):
        names = ", ".join(i for i, _ in one.terms)
        taps = "" if last or not steps else f"; tile(..., size=1) all of {names} but one"
        return f"it is read through a window over {names}{taps}"
    if step != 1 and (last or not 1 < step <= steps):
        return f"it is read in steps of {step}"
    return ""


def wide(launch: Launch, one: Slice) -> list[tuple[str, int]]:
    """The indices that a dimension of a region runs along, with their coefficients.

    Indices with a tile of one are left out, as they only move its origin.
    """
    tiles = dict(launch.tiles)
    return [(i, c) for i, c in one.terms if tiles.get(i) != 1]


def box_dimensions(launch: Launch, region: Sequence[Slice]) -> tuple[tuple[int, ...], ...]:
    """The dimensions of a box, each as the dimensions of the region that it consists of.

    Neighbouring dimensions with one element each, which is in bounds, can be merged.
    """
    found: list[tuple[int, ...]] = []
    joins = False
    for n, one in enumerate(region):
        plain = len(one.terms) == 1 and one.terms[0][1] == 1 and one.offset == Number(0)
        alone = plain and one.rows is None and not wide(launch, one)
        if alone and joins:
            found[-1] += (n,)
        else:
            found.append((n,))
        joins = alone
    return tuple(found)


def _shape(launch: Launch, move: Load | Store, machine: Machine, sizes: Mapping[str, int]) -> str:
    """Why a box has a shape that the machine does not move; empty if it moves it.

    On some machines its extents must be powers of two, and no wider than the machine's limit.
    """
    most, dims = machine.model.box_dimensions, len(box_dimensions(launch, move.region))
    if most and dims > most:
        return f"it has {dims} dimensions, more than {most}"
    for one in move.region:
        over = wide(launch, one)
        tile = dict(launch.tiles).get(over[0][0], 0) if over else 0
        if machine.model.boxes_are_powers_of_two and tile and tile != power_of_two(tile):
            return f"its tile has {tile} elements along {one.axis}, which is no power of two"
        width = power_of_two(_extent(launch, move, one, sizes)) * (over[0][1] if over else 1)
        if machine.box and width > machine.box:
            return f"its box has {width} elements along {one.axis}, more than {machine.box}"
    return _slots(launch, move, machine, sizes)


def _slots(launch: Launch, move: Load | Store, machine: Machine, sizes: Mapping[str, int]) -> str:
    """Why the stages of a pipelined box do not all start where the engine can write; empty if they
    do.

    The stages are contiguous, so the bytes of one must be a multiple of `box_slot_bytes`.
    """
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
    """Why rows of a box do not start at multiples of ALIGNED bytes; empty if they do."""
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


def _beyond(launch: Launch, move: Load | Store, sizes: Mapping[str, int]) -> str:
    """Why a box can exceed the part of a tensor that it is stored to; empty if it cannot.

    The engine clips a box only at the bounds of the whole tensor.
    """
    own = next(p for p in launch.parameters if p.name == move.tensor)
    for one, size, whole in zip(move.region, own.extent, own.shape, strict=True):
        box = power_of_two(_extent(launch, move, one, sizes))
        if size != whole and number(size, sizes) % box:
            return f"its box has {box} elements along {one.axis}, no divisor of its part's {number(size, sizes)}"
    return ""


def _extent(launch: Launch, move: Load | Store, one: Slice, sizes: Mapping[str, int]) -> int:
    """The extent of a box along a dimension."""
    if one.axis is None:
        return 1
    over, whole = wide(launch, one), dict(launch.whole)
    # the axis covers everything that a window moves over
    if over and one.terms != ((over[0][0], 1),):
        return dict(launch.tiles).get(over[0][0]) or number(whole[over[0][0]], sizes)
    axes = launch.value(move.value).axes
    return number(next(a.extent for a in axes if a.name == one.axis), sizes)
