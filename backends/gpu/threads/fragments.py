"""Storage of tiles: axes, fragments in registers, tiles in shared and tensor memory; vector
accesses, and operands of matrix instructions."""

from __future__ import annotations

from dataclasses import dataclass

from backends.gpu.layout.layout import Layout
from backends.gpu.layout.swizzle import Swizzle
from backends.gpu.tile import Name
from ir.spec import Expr, Number


@dataclass(frozen=True, slots=True)
class Axis:
    """The distribution of one axis of a tile over threads and registers.

    position(t, r) = thread(t) + register(r % R) + (r // R) * span, where R = register.size and r <
    R * ceil(width / span). A thread mode with stride 0 makes copies.
    """

    index: str  # of the spec, or an internal name
    thread: Layout  # thread index in its block -> position
    register: Layout  # register number -> position
    span: int  # positions that one repetition of the registers covers
    width: Expr  # positions of the axis: a number, or a launch constant


def registers(axis: Axis) -> int | None:
    """The registers of each thread along an axis; None where only the launch knows."""
    if not isinstance(axis.width, Number):
        return None
    return axis.register.size * -(-int(axis.width.value) // axis.span)


@dataclass(frozen=True, slots=True)
class Fragment:
    """A tile in registers: an array with a dimension of registers for each axis. Without axes it is
    a scalar, the same in all threads unless it was computed from `Thread`."""

    name: Name
    dtype: str
    axes: tuple[Axis, ...] = ()


@dataclass(frozen=True, slots=True)
class Shared:
    """A tile in shared memory, row-major with the last axis contiguous.

    Its last axes form a row. With a panel, rows are divided into panels of that many elements, and
    the parts of all rows in one panel are contiguous: element (row, c) is at (c // panel) * rows *
    panel + row * panel + c % panel.
    """

    name: Name  # of sort "shared"
    dtype: str
    axes: tuple[str, ...]
    extents: tuple[Expr, ...]  # elements along each axis
    region: str  # tiles of one region overlap, since they are never live together
    stages: int = 1  # copies of the tile, for software pipelining
    row: int = 1  # number of axes that form a row
    padding: int = 0  # elements between rows, for a tile without panels
    panel: int = 0  # elements; 0: rows are not divided
    swizzle: Swizzle | None = None  # of the element offset in a stage
    # Offset in elements, for a part of another tile of its region that has the same extents
    # otherwise. It is a multiple of the swizzle's period.
    begin: int = 0
    # The rows of the positions of its first axis; None: consecutive rows.
    lines: Layout | None = None


@dataclass(frozen=True, slots=True)
class Accumulator:
    """Matmul results in tensor memory, with the layout of a fragment's registers: each register of
    a thread is a column, and the row is the thread's number within a warpgroup. Each warpgroup has
    its own consecutive columns, and accumulators are consecutive, too."""

    name: Name  # of sort "accumulator"
    fragment: Name  # the fragment into which it is loaded
    groups: int  # number of warpgroups


@dataclass(frozen=True, slots=True)
class Vector:
    """Consecutive registers along an axis that are also consecutive in memory."""

    axis: str
    count: int  # elements
    aligned: Name | None  # the constant that tells whether they are aligned; None: always


@dataclass(frozen=True, slots=True)
class Instruction:
    """A matrix instruction of a warp, and the position of its operand registers in fragments.

    a, b, c: for each register of the instruction's operand, in order, the offsets of its element
    among the registers of the fragment's two axes, (m, k), (k, n) and (m, n).
    a_steps, b_steps, c_steps: the registers along these axes that one issue covers; larger axes
    repeat them.
    """

    name: str  # in the target's table of matrix instructions
    a: tuple[tuple[int, int], ...]
    b: tuple[tuple[int, int], ...]
    c: tuple[tuple[int, int], ...]
    a_steps: tuple[int, int]
    b_steps: tuple[int, int]
    c_steps: tuple[int, int]
