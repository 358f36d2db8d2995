"""The matrix instructions with functions in kernel.h, for thread programs.

A function swaps the operands of the instruction, so that it computes the transposed result. A
work-item then has runs of 4 elements of a row of C, not of a column. Such runs are stored together,
and are the operand A of a following matmul.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from backends.backend import BackendError
from backends.gpu.layout.layout import IntTuple, Layout
from backends.gpu.layout.text import parse_layout
from backends.hip.spelling import mfma
from ir.machine import Machine
from ir.spec import DTYPES
from machines.gpu.matrix_instructions import MatrixInstruction, of_machine


def instructions(machine: Machine) -> tuple[MatrixInstruction, ...]:
    """Those of a machine; for each dtype small tiles first, and among these the largest K."""
    return tuple(sorted(with_functions(machine), key=lambda i: (i.m, -i.k)))


def with_functions(machine: Machine) -> tuple[MatrixInstruction, ...]:
    """All with functions in kernel.h, on operands of supported dtypes."""
    rows = (i for i in of_machine(machine) if i.a.dtype in DTYPES and _has(i.name))
    return tuple(transposed(i) for i in rows)


@cache
def transposed(row: MatrixInstruction) -> MatrixInstruction:
    """The instruction for C transposed = B transposed * A transposed. M and N must be equal, and A
    and B must have the same layout."""
    if row.m != row.n or row.a.registers != row.b.registers:
        raise BackendError("emit", f"`{row.name}` has operands of two forms")
    held = parse_layout(row.c.registers)
    found = Layout(held.shape, _transposed(held.stride, row.m))
    return replace(row, c=replace(row.c, registers=str(found)))


def _transposed(stride: IntTuple, rows: int) -> IntTuple:
    """Strides of row + rows * column, as those of column + rows * row."""
    if isinstance(stride, tuple):
        return tuple(_transposed(s, rows) for s in stride)
    return stride * rows if stride < rows else stride // rows


def _has(name: str) -> bool:
    try:
        return bool(mfma(name))
    except BackendError:
        return False
