"""Tensor memory for one thread of Python: what `kernel/accumulators.py` does with CuTe DSL.

A matmul that was started is done when somebody waits for a signal that tells of it, and no sooner, so
that what does not wait finds nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from backends.cutedsl.testing import memory
from backends.cutedsl.testing.machine import HERE, WARP, Block, Signal
from backends.cutedsl.testing.memory import Pointer
from backends.cutedsl.testing.numbers import Float32

ROWS = 128


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of a block's tensor memory, from one on."""

    block: Block
    first: int = 0

    def __add__(self, count: Any) -> Columns:
        return Columns(self.block, self.first + int(count))

    def part(self, count: int) -> np.ndarray:
        """So many of them, [row, column]; IndexError where the block has not taken them."""
        held = self.block.columns
        if held is None or self.first + count > held.shape[1]:
            raise IndexError(
                f"columns {self.first} to {self.first + count - 1} are not the block's"
            )
        return held[:, self.first : self.first + count]


def _together() -> None:
    HERE.block.group("columns", HERE.block.threads).together(None, lambda given: None)


def take_columns(count: int) -> Columns:
    """Columns of NaN, for all threads of the block."""
    if HERE.number == 0:
        HERE.block.columns = np.full((ROWS, count), np.nan)
    _together()
    return Columns(HERE.block)


def give_columns_back(columns: Columns, count: int) -> None:
    """RuntimeError where there are others, or matmuls in flight."""
    if HERE.number == 0:
        held = columns.block.columns
        if held is None or held.shape[1] != count or columns.block.matmuls:
            raise RuntimeError("a block gives back what it did not take, or still multiplies into")
        columns.block.columns = None


def _started(work: Callable[[], None], signal: Signal | None = None) -> None:
    """What the hardware will do, once; the threads of the warp come here together."""
    warp = HERE.block.group(("warp", HERE.number // WARP), WARP)
    warp.together(None, lambda given: HERE.block.matmuls.append((signal, work)))


def tensor_mma(columns: Columns, a: Any, b: Any, shape: tuple[int, int, int], onto: Any) -> None:
    """A matmul in flight."""
    m, n, k = shape
    adds = bool(onto)

    def work() -> None:
        left = np.array([[float(a.tensor[(i, j)]) for j in range(k)] for i in range(m)])
        right = np.array([[float(b.tensor[(j, i)]) for j in range(n)] for i in range(k)])
        part = columns.part(n)
        part[...] = left @ right + (part if adds else 0)

    _started(work)


def signal_matmuls(at: Pointer) -> None:
    """An arrival when all matmuls so far are over."""
    signal = HERE.block.signals[at.address()]
    _started(signal.arrive, signal)


def load_columns(columns: Columns, to: Any) -> None:
    """The registers of this thread's row."""
    count = memory.size(to)
    row = columns.part(count)[HERE.number % ROWS]
    for n in range(count):
        (to.iterator + n).store(Float32(row[n]))
