"""Warpgroup matmuls, whose operands an instruction reads from shared memory (wgmma)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from backends.gpu.layout.swizzle import Swizzle
from backends.gpu.matrix.fragments import Fragments
from backends.gpu.threads.interpreter.accesses import WholeTile
from backends.gpu.threads.interpreter.expressions import Run
from backends.gpu.threads.interpreter.faults import FRAGMENT
from backends.gpu.threads.interpreter.products import add, computed_in, instruction_of, matrices
from backends.gpu.threads.interpreter.state import Block, Variable
from backends.gpu.threads.thread import TensorMultiply, WarpgroupMultiply
from ir.spec import DTYPES
from machines.gpu.matrix_instructions import MatrixInstruction, Operand

_ROW = 16  # bytes that a swizzle keeps together


def multiply(
    block: Block,
    s: WarpgroupMultiply,
    variables: tuple[Variable, Variable | None],
    tiles: tuple[WholeTile | None, WholeTile],
    table: Sequence[MatrixInstruction],
) -> Run:
    """The closure of to += a @ b over all of K. variables: to, and a where it is a fragment."""
    (onto, held), (a, b) = variables, tiles
    m, n, _ = s.shape
    memory = b.memory
    row = instruction_of_shape(block, s, table)
    of_c = matrices(block, onto, (s.instruction.c, s.instruction.c_steps), row.c, (m, n))
    rows, columns = onto.axes[-2].index, onto.axes[-1].index
    require_operands(block, s, (a, b), (rows, columns), table)
    (depth_axis,) = (i for i in b.tile.shared.axes if i != columns)
    depth = np.arange(b.tile.extents[b.tile.shared.axes.index(depth_axis)])[None]
    at = None
    if held is not None:
        assert row.a is not None, "of an instruction that takes A from registers"
        of_a = matrices(block, held, (s.instruction.a, s.instruction.a_steps), row.a, (m, row.k))
        at, depth = of_a.at, of_a.columns[:, 0]
        fits = of_a.rows.shape[1] == of_c.rows.shape[1]
        if (
            not fits
            or (of_a.rows != of_c.rows[:, :, :1]).any()
            or (of_a.columns != np.arange(of_a.columns.shape[2])).any()
        ):
            hint = "derive both fragments from the instruction's operand layouts"
            what = f"`{held.name.stem}` and `{onto.name.stem}` hold other rows"
            raise block.fault(FRAGMENT, what, hint)
    threads = np.arange(0, block.threads, row.threads)[:, None, None]
    kind = computed_in(onto)

    def run() -> None:
        block.require_groups("a matrix instruction", row.threads)
        memory.begin_matmul()
        onto.flies = False
        if at is not None and held is not None:
            left = block.whole(held).reshape(-1)[at]
        else:
            assert a is not None, "a tile, where there is no fragment"
            left = a.read({rows: of_c.rows[:, :, :1], depth_axis: depth[:, None, :]}, threads)
        right = b.read({depth_axis: depth[:, :, None], columns: of_c.columns[:, :1]}, threads)
        sums = np.matmul(left.astype(kind, copy=False), right.astype(kind, copy=False))
        add(block, onto, sums.reshape(-1)[of_c.home].reshape(onto.shape))
        memory.settle(s.pending)
        block.flights.append((onto, held))
        block.land(s.pending)

    return run


def instruction_of_shape(
    block: Block, s: WarpgroupMultiply | TensorMultiply, table: Sequence[MatrixInstruction]
) -> Fragments:
    """The operands of a matmul's instruction. Raises ThreadFault where its shape differs."""
    row = instruction_of(table, s.instruction.name, s.shape[1])
    if (row.m, row.n, row.k) != s.shape:
        hint = "take the shape from the table of matrix instructions"
        raise block.fault(FRAGMENT, f"`{s.instruction.name}` is not of {s.shape}", hint)
    return row


def require_operands(
    block: Block,
    s: WarpgroupMultiply | TensorMultiply,
    tiles: tuple[WholeTile | None, WholeTile],
    axes: tuple[str, str],
    table: Sequence[MatrixInstruction],
) -> None:
    """Raises ThreadFault where an operand in shared memory does not have the layout that its
    instruction requires. tiles: a and b, None for a fragment. axes: the indices of M and N."""
    name, n = s.instruction.name, s.shape[1]
    own = next(one for one in table if one.name.format(n=n) == name)
    for tile, operand, across in zip(tiles, (own.a, own.b), axes, strict=True):
        if tile is not None:
            require_panels(block, tile)
            require_major(block, tile, operand, across)


def require_major(block: Block, tile: WholeTile, operand: Operand, across: str) -> None:
    """Raises ThreadFault where a tile is contiguous along a dimension that the instruction does not support."""
    shared = tile.tile.shared
    if ("mn" if shared.axes[-1] == across else "k") not in operand.shared:
        raise block.fault(
            FRAGMENT,
            f"`{shared.name.stem}` is contiguous along {shared.axes[-1]}, of {operand.dtype}",
            f"let it be contiguous along {' or '.join(operand.shared)}",
        )


def require_panels(block: Block, tile: WholeTile) -> None:
    """Raises ThreadFault where a tile does not have the panels and the swizzle of the instruction's descriptor."""
    shared = tile.tile.shared
    size = DTYPES[shared.dtype]
    bits = (shared.panel * size // _ROW).bit_length() - 1
    wanted = Swizzle(bits, 4, 3).of_elements(size) if bits > 0 else None
    if shared.panel * size != _ROW << max(bits, 0) or shared.swizzle != wanted:
        raise block.fault(
            FRAGMENT,
            f"`{shared.name.stem}` has panels of {shared.panel} and the swizzle {shared.swizzle}",
            f"let panels have 16, 32, 64 or 128 bytes; for these the swizzle is {wanted}",
        )
