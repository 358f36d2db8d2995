"""The matrix instructions that kernel.h has functions of, as thread programs use them.

A function gives the instruction its operands the other way round, so that it computes the transposed
result: a work-item then holds runs of 4 elements of a row of C, not of a column. Such runs are stored at
once, and are what the next matmul takes as operand A.
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
    """Those of a machine; of each dtype small tiles first, and of these the ones of most K."""
    return tuple(sorted(with_functions(machine), key=lambda i: (i.m, -i.k)))


def with_functions(machine: Machine) -> tuple[MatrixInstruction, ...]:
    """All that kernel.h has functions of, on operands that the language has dtypes of."""
    rows = (i for i in of_machine(machine) if i.a.dtype in DTYPES and _has(i.name))
    return tuple(transposed(i) for i in rows)


@cache
def transposed(row: MatrixInstruction) -> MatrixInstruction:
    """The instruction of C transposed = B transposed * A transposed. M and N are equal, and A lies as
    B does."""
    if row.m != row.n or row.a.registers != row.b.registers:
        raise BackendError("emit", f"`{row.name}` has operands of two forms")
    held = parse_layout(row.c.registers)
    found = Layout(held.shape, _transposed(held.stride, row.m))
    return replace(row, c=replace(row.c, registers=str(found)))


def _transposed(stride: IntTuple, rows: int) -> IntTuple:
    """Strides of row + rows * column as those of column + rows * row."""
    if isinstance(stride, tuple):
        return tuple(_transposed(s, rows) for s in stride)
    return stride * rows if stride < rows else stride // rows


def _has(name: str) -> bool:
    try:
        return bool(mfma(name))
    except BackendError:
        return False
