"""Where elements lie: the axes of a tile, fragments in registers, tiles in shared memory; how registers
move at once, and as operands of instructions."""

from __future__ import annotations

from dataclasses import dataclass

from backends.gpu.layout.layout import Layout
from backends.gpu.layout.swizzle import Swizzle
from backends.gpu.tile import Name
from ir.spec import Expr, Number


@dataclass(frozen=True, slots=True)
class Axis:
    """How the positions of one axis of a tile are distributed over threads and registers.

    position(t, r) = thread(t) + register(r % R) + (r // R) * span, where R = register.size and
    r < R * ceil(width / span). A thread mode with stride 0 makes copies.
    """

    index: str  # of the spec, or a name of its own
    thread: Layout  # number of the thread in its block -> position
    register: Layout  # number of the register -> position
    span: int  # positions that one repetition of the registers covers
    width: Expr  # positions of the axis: a number, or a constant of the launch


def registers(axis: Axis) -> int | None:
    """How many registers each thread has along an axis; None where only the launch knows."""
    if not isinstance(axis.width, Number):
        return None
    return axis.register.size * -(-int(axis.width.value) // axis.span)


@dataclass(frozen=True, slots=True)
class Fragment:
    """A tile in registers: an array with a dimension of registers for each axis. No axes: a scalar,
    the same in all threads unless it was made from `Thread`."""

    name: Name
    dtype: str
    axes: tuple[Axis, ...] = ()


@dataclass(frozen=True, slots=True)
class Shared:
    """A tile in shared memory, row-major with the last axis contiguous.

    Its last axes make up a row. With a panel, rows are cut into panels of that many elements, and the
    parts of all rows in one panel lie together: element (row, c) is at
    (c // panel) * rows * panel + row * panel + c % panel.
    """

    name: Name  # of sort "shared"
    dtype: str
    axes: tuple[str, ...]
    extents: tuple[Expr, ...]  # elements along each axis
    region: str  # tiles of one region overlap: they are never alive together
    stages: int = 1  # copies of the tile, for software pipelining
    row: int = 1  # axes of a row
    padding: int = 0  # elements between rows, of a tile without panels
    panel: int = 0  # elements; 0: a row is whole
    swizzle: Swizzle | None = None  # of the offset of an element in its stage, in elements
    # Elements before it: where it is a part of another tile of its region, with which its extents are alike. The
    # swizzle repeats after so many.
    begin: int = 0
    # Where the positions of its first axis are among the rows; None: one after the other.
    lines: Layout | None = None


@dataclass(frozen=True, slots=True)
class Accumulator:
    """Results of matmuls in tensor memory, which lie there as in the registers of a fragment: each of a
    thread's registers in a column, in the row of its number among four warps. Each four warps have
    columns of their own, one after the other. Accumulators lie one after the other, too."""

    name: Name  # of sort "accumulator"
    fragment: Name  # that is loaded from it
    groups: int  # of four warps


@dataclass(frozen=True, slots=True)
class Vector:
    """Consecutive registers along an axis that are consecutive in memory, too."""

    axis: str
    count: int  # elements
    aligned: Name | None  # the constant that tells whether they are; None: they always are


@dataclass(frozen=True, slots=True)
class Instruction:
    """A matrix instruction of a warp and how its operands' registers lie in fragments.

    a, b, c: for each register of the instruction's operand, in order, the offsets of its element
    among the registers of the fragment's two axes, (m, k), (k, n) and (m, n). a_steps, b_steps,
    c_steps: how many registers along these axes one issue covers; an axis repeats them.
    """

    name: str  # of the target's table of matrix instructions
    a: tuple[tuple[int, int], ...]
    b: tuple[tuple[int, int], ...]
    c: tuple[tuple[int, int], ...]
    a_steps: tuple[int, int]
    b_steps: tuple[int, int]
    c_steps: tuple[int, int]
