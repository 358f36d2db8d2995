"""Executes a matrix instruction as a whole on the registers of its threads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from backends.gpu.layout.layout import Layout, concatenate
from backends.gpu.layout.text import parse_layout
from ir.errors import KernelError
from machines.gpu.matrix_instructions import MatrixInstruction

SOURCES = ("registers", "shared")


@dataclass(frozen=True, slots=True)
class Fragments:
    """The layouts of an instruction's operands: (thread, register) -> element, column-major.

    The element is row + M * k of A, column + N * k of B, row + M * column of C and D. An operand
    without a layout is read from shared memory.
    """

    m: int
    n: int
    k: int
    threads: int
    a: Layout | None
    b: Layout | None
    c: Layout
    block: int = 0  # elements along K that share a scale; 0: there are no scales
    scales: Layout | None = None  # of A, row + M * block; those of B are alike


@cache
def fragments(
    instruction: MatrixInstruction, n: int | None = None, a: str = "", b: str = ""
) -> Fragments:
    """The fragments of an instruction at an N; None: its least N.

    a, b: one of SOURCES where the instruction has a choice; default: registers. Raises KernelError
    where the instruction has no such N or source, or where a layout does not hold each element
    once.
    """
    n = instruction.n if n is None else n
    if n not in instruction.sizes_n:
        raise KernelError(
            f"`{instruction.name}` has no N of {n}",
            allowed=", ".join(map(str, instruction.sizes_n)),
        )
    m, k = instruction.m, instruction.k
    repeats = n // instruction.n
    c = parse_layout(instruction.c.registers)
    if repeats > 1:
        threads, registers = c
        c = concatenate(threads, concatenate(*registers, Layout(repeats, m * instruction.n)))
    held = Fragments(
        m,
        n,
        k,
        instruction.threads,
        _input(instruction, "a", a),
        _input(instruction, "b", b),
        c,
        instruction.block,
        parse_layout(instruction.scales) if instruction.block else None,
    )
    if held.scales is not None:
        where = f"`{instruction.name}`, scales"
        _require(held.scales, instruction.threads, m * k // held.block, where)
    for letter, layout, size in (("A", held.a, m * k), ("B", held.b, n * k), ("C", c, m * n)):
        if layout is not None:
            _require(layout, instruction.threads, size, f"`{instruction.name}`, {letter}")
    return held


def _input(instruction: MatrixInstruction, letter: str, source: str) -> Layout | None:
    operand = getattr(instruction, letter)
    allowed = [s for s, there in zip(SOURCES, (operand.registers, operand.shared)) if there]
    source = source or allowed[0]
    if source not in allowed:
        raise KernelError(
            f"`{instruction.name}` does not take {letter.upper()} from {source!r}",
            allowed=", ".join(allowed),
        )
    return parse_layout(operand.registers) if source == "registers" else None


def _require(layout: Layout, threads: int, size: int, where: str) -> None:
    """Raises KernelError unless the threads' registers hold each element exactly once."""
    if len(layout) != 2 or layout[0].size != threads:
        raise KernelError(f"`{layout}` is not (thread, register) of {threads} threads", where=where)
    if sorted(layout.indices()) != list(range(size)):
        raise KernelError(f"`{layout}` does not hold each of {size} elements once", where=where)


def multiply(
    held: Fragments,
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    scales: tuple[np.ndarray, np.ndarray] | None = None,
) -> np.ndarray:
    """D = A * B + C in the arithmetic of C's dtype, as fragments. scales: of A and of B.

    A fragment has shape (..., thread, register). An operand without a layout is the matrix itself:
    (..., M, K) of A, (..., N, K) of B. Leading dimensions count independent multiplications.
    """
    left = _matrix(a, held.a, held.m, held.k)
    right = _matrix(b, held.b, held.n, held.k)
    if held.scales is not None and scales is not None:
        blocks = held.k // held.block
        of_a, of_b = (_matrix(s, held.scales, n, blocks) for s, n in zip(scales, (held.m, held.n)))
        left, right = left * of_a.repeat(held.block, -1), right * of_b.repeat(held.block, -1)
    product = left.astype(c.dtype) @ np.swapaxes(right.astype(c.dtype), -1, -2)
    result = _matrix(c, held.c, held.m, held.n) + product
    flat = np.swapaxes(result, -1, -2).reshape(*result.shape[:-2], held.m * held.n)
    return flat[..., _elements(held.c)]


def _matrix(values: np.ndarray, layout: Layout | None, rows: int, columns: int) -> np.ndarray:
    """The matrix, (..., row, column), that fragments hold."""
    wanted = (rows, columns) if layout is None else (layout[0].size, layout[1].size)
    if values.shape[-2:] != wanted:
        raise KernelError(
            f"an operand has shape {values.shape}", allowed=f"(..., {wanted[0]}, {wanted[1]})"
        )
    if layout is None:
        return values
    flat = np.empty((*values.shape[:-2], rows * columns), values.dtype)
    flat[..., _elements(layout)] = values
    return np.swapaxes(flat.reshape(*values.shape[:-2], columns, rows), -1, -2)


@cache
def _elements(layout: Layout) -> np.ndarray:
    """The element of each thread and register."""
    shape = (layout[1].size, layout[0].size)  # threads are fastest in linear coordinates
    return np.ascontiguousarray(np.array(layout.indices()).reshape(shape).T)
