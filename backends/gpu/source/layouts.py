"""Layouts of fragments and tiles as index arithmetic, for the templates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod

from backends.backend import BackendError
from backends.gpu.threads.fragments import registers
from backends.gpu.threads.thread import Axis, Fragment, Shared, SharedLoad
from backends.gpu.values import product
from ir.spec import SMALL, Expr, Number

BYTES = {
    "f64": 8,
    "f32": 4,
    "tf32": 4,
    "i32": 4,
    "i64": 8,
    "f16": 2,
    "bf16": 2,
    "i16": 2,
} | dict.fromkeys(("i8", "u8", "b8", *SMALL), 1)
WIDEST = 16  # bytes of the widest access of a thread
_PAIR = ((2, 2), (2, 4))  # the strides of the two lowest bits of a thread along pairs of registers
_LINE = ((2, 1), (2, 2), (2, 4))  # and of the three bits above along the other axis


@dataclass(frozen=True, slots=True)
class Counted(Axis):
    """An axis whose number of registers only the launch knows; it has a name in the source."""

    number: int  # distinguishes axes of one index


@dataclass(frozen=True, slots=True)
class Mode:
    """A summand of a position: number / divisor % extent * stride."""

    divisor: int
    extent: int  # 0: unbounded
    stride: int


@dataclass(frozen=True, slots=True)
class Matrices:
    """The position of the four (or two, or one) matrices of an ldmatrix among a fragment's registers."""

    along: int  # the axis with pairs of registers, and the other one
    across: int
    pairs: int  # matrices along it, and their distance in positions
    pair_step: int
    lines: int  # the same along the other axis
    line_step: int


def kept(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """The axes for which an array of registers has dimensions."""
    return tuple(a for a in axes if registers(a) != 1)


def modes(pairs: Sequence[tuple[int, int]]) -> tuple[Mode, ...]:
    """The summands of a position for modes with strides; the last mode is unbounded."""
    found: list[Mode] = []
    divisor = 1
    merged: list[tuple[int, int]] = []
    for extent, stride in pairs:
        if extent == 1:
            continue
        if merged and merged[-1][1] * merged[-1][0] == stride:
            merged[-1] = (merged[-1][0] * extent, merged[-1][1])
        else:
            merged.append((extent, stride))
    for n, (extent, stride) in enumerate(merged):
        if stride:
            found.append(Mode(divisor, 0 if n == len(merged) - 1 else extent, stride))
        divisor *= extent
    return tuple(found)


def thread_modes(axis: Axis, above: int = 1) -> tuple[Mode, ...]:
    """The start of a thread's positions. above: number of threads that count as one."""
    upper, below = [(above, 0)], 1
    for extent, stride in axis.thread.flat:
        cut = min(extent, max(1, above // below))  # part of the mode below
        upper.append((extent // cut, stride * cut))
        below *= extent
    return modes(upper)


def register_modes(axis: Axis) -> tuple[Mode, ...]:
    """The position of a register, relative to its thread's."""
    repeats = registers(axis)
    count = 1 << 30 if repeats is None else repeats // axis.register.size
    return modes([*axis.register.flat, (count, axis.span)])


def overshoots(axis: Axis) -> bool:
    """Whether the last registers may be beyond the end of the axis. A width that only the launch
    knows is a multiple of the span."""
    return isinstance(axis.width, Number) and bool(axis.width.value % axis.span)


def among(indices: Sequence[str], axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """The axes of these indices, in their order."""
    own = {a.index: a for a in axes}
    return tuple(own[i] for i in indices if i in own)


def scan_threads(axis: Axis, warp: int) -> int:
    """The threads of a warp over which a scanned axis is distributed."""
    return prod(extent for extent, stride in _split(axis, warp)[0] if stride)


def scan_parts(axis: Axis, warp: int) -> int:
    """The warps over which a scanned axis is distributed."""
    return prod(extent for extent, stride in _split(axis, warp)[1] if stride)


def _split(axis: Axis, warp: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The modes of a thread within its warp, and those of its warp."""
    parts: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    below = 1
    for extent, stride in axis.thread.flat:
        own = min(extent, max(1, warp // below))
        parts[0].append((own, stride))
        parts[1].append((extent // own, stride * own))
        below *= extent
    return parts


def scan_distance(axis: Axis) -> int:
    """The distance between the threads that share a scanned axis."""
    below = 1
    for extent, stride in axis.thread.flat:
        if stride:
            return below
        below *= extent
    return 1


def strides(tile: Shared) -> tuple[tuple[Expr | int, ...], ...]:
    """For each axis of a tile, the factors of its stride. With panels, strides of outer axes are in
    rows, and strides within a row are in elements of an undivided row."""
    first = len(tile.axes) - tile.row
    outer, inner = tile.extents[:first], tile.extents[first:]
    length = () if tile.panel else (row_length(tile),)
    return (
        *(_factors((*outer[n + 1 :], *length)) for n in range(first)),
        *(_factors(inner[n + 1 :]) for n in range(tile.row)),
    )


def row_length(tile: Shared) -> Expr | int:
    """The row stride in elements."""
    number, *rest = (1, *_factors(tile.extents[-tile.row :]))
    if rest and isinstance(rest[0], int):
        number, *rest = rest
    if not rest:
        return int(number) + tile.padding  # type: ignore[call-overload]
    whole = product([Number(number), *rest] if number != 1 else rest)  # type: ignore[list-item]
    return Padded(whole, tile.padding) if tile.padding else whole


def stage_size(tile: Shared) -> tuple[Expr | int, ...]:
    """The factors of the number of elements of a stage."""
    return _factors((*tile.extents[: -tile.row], row_length(tile)))


def element_bytes(tile: Shared) -> int:
    """Bytes of an element of a tile."""
    return BYTES[tile.dtype]


def rows(tile: Shared) -> tuple[Expr | int, ...]:
    """The factors of the number of rows of a tile."""
    return _factors(tile.extents[: -tile.row]) or (1,)


@dataclass(frozen=True, slots=True)
class Padded(Expr):
    """The length of a row with its padding."""

    extent: Expr
    padding: int


def _factors(extents: Sequence[Expr | int]) -> tuple[Expr | int, ...]:
    """A product: its constant factor, if not 1, then factors that only the launch knows."""
    known = [int(e.value) if isinstance(e, Number) else e for e in extents]
    number = prod(e for e in known if isinstance(e, int))
    return (*([number] if number != 1 else []), *(e for e in known if not isinstance(e, int)))


def vector(axes: Sequence[Axis], tile: Shared) -> int:
    """The number of consecutive registers of the last axis that are consecutive and aligned in a tile."""
    *outer, last = axes or (None,)
    found = WIDEST // BYTES[tile.dtype]
    if last is None or last.index != tile.axes[-1]:
        return 1
    (extent, stride), *rest = last.register.flat
    if stride != 1 or extent == 1:
        return 1
    beyond = [s for _, s in (*rest, *last.thread.flat) if s] + [last.span, extent]
    first = len(tile.axes) - tile.row if tile.panel else 0  # rows are whole panels apart
    beyond += [tile.panel] if tile.panel else []
    for factors in strides(tile)[first:-1]:
        beyond += [f for f in factors[:1] if isinstance(f, int)] or [1]
    if tile.swizzle is not None:
        beyond.append(1 << tile.swizzle.base)
    return gcd(found, *beyond)


def matrices(s: SharedLoad, fragment: Fragment, tile: Shared) -> Matrices:
    """The position of ldmatrix matrices in a fragment. Raises BackendError where its layout does not fit them."""
    named = enumerate(fragment.axes)
    pairs = [n for n, a in named if _bits(a, 0) == _PAIR and a.register.flat[0] == (2, 1)]
    lines = [n for n, a in enumerate(fragment.axes) if _bits(a, 2) == _LINE]
    if len(pairs) != 1 or len(lines) != 1:
        raise BackendError("emit", f"`{fragment.name.stem}` does not lie as matrices do")
    along, across = pairs[0], lines[0]
    if (fragment.axes[along].index == tile.axes[-1]) != (s.by == "matrix"):
        raise BackendError("emit", f"the rows of `{fragment.name.stem}` are not contiguous")
    for count, rows in ((2, 2), (4, 1), (1, 4), (2, 1), (1, 2), (1, 1)):
        pair_step = _step(fragment.axes[along], 2, count)
        line_step = _step(fragment.axes[across], 1, rows)
        if pair_step is not None and line_step is not None:
            return Matrices(along, across, count, pair_step, rows, line_step)
    raise BackendError("emit", f"`{fragment.name.stem}` has no whole matrices")


def _bits(axis: Axis, first: int) -> tuple[tuple[int, int], ...]:
    """The bits of a thread within its warp, from `first` on, that count along an axis."""
    bits = [(2, axis.thread(1 << bit)) for bit in range(min(5, axis.thread.size.bit_length() - 1))]
    own = tuple((e, s) for e, s in bits if s)
    return own if own == tuple(bits[first : first + len(own)]) else ()


def _step(axis: Axis, one: int, count: int) -> int | None:
    """The distance between `count` successive groups of registers; None where it varies. one: registers of a group."""
    total = (
        registers(axis) or axis.register.size
    )  # those of one repetition, of which there are several
    if total % (one * count):
        return None
    at = [
        axis.register(r % axis.register.size) + r // axis.register.size * axis.span
        for r in range(total)
    ]
    steps = {
        at[first + n * one] - at[first + (n - 1) * one]
        for first in range(0, total, one * count)
        for n in range(1, count)
    }
    return (steps.pop() if steps else 0) if len(steps) < 2 else None
