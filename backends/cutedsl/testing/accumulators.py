"""Tensor memory in Python, for one thread: emulates `kernel/accumulators.py`.

A matmul is computed only when a thread waits for a signal that reports it. Code that does not wait
therefore reads nothing.
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
    """Columns of a block's tensor memory, from a first one on."""

    block: Block
    first: int = 0

    def __add__(self, count: Any) -> Columns:
        return Columns(self.block, self.first + int(count))

    def part(self, count: int) -> np.ndarray:
        """The first `count` columns, [row, column]. IndexError if the block has not allocated them."""
        held = self.block.columns
        if held is None or self.first + count > held.shape[1]:
            raise IndexError(
                f"columns {self.first} to {self.first + count - 1} are not the block's"
            )
        return held[:, self.first : self.first + count]


def _together() -> None:
    HERE.block.group("columns", HERE.block.threads).together(None, lambda given: None)


def take_columns(count: int) -> Columns:
    """Allocates columns of NaN, for all threads of the block."""
    if HERE.number == 0:
        HERE.block.columns = np.full((ROWS, count), np.nan)
    _together()
    return Columns(HERE.block)


def give_columns_back(columns: Columns, count: int) -> None:
    """Frees columns. RuntimeError if others are allocated, or if matmuls are in flight."""
    if HERE.number == 0:
        held = columns.block.columns
        if held is None or held.shape[1] != count or columns.block.matmuls:
            raise RuntimeError("a block gives back what it did not take, or still multiplies into")
        columns.block.columns = None


def _started(work: Callable[[], None], signal: Signal | None = None) -> None:
    """Enqueues an asynchronous operation once, when all threads of the warp have called this."""
    warp = HERE.block.group(("warp", HERE.number // WARP), WARP)
    warp.together(None, lambda given: HERE.block.matmuls.append((signal, work)))


def tensor_mma(columns: Columns, a: Any, b: Any, shape: tuple[int, int, int], onto: Any) -> None:
    """Issues an asynchronous matmul."""
    m, n, k = shape
    adds = bool(onto)

    def work() -> None:
        left = np.array([[float(a.tensor[(i, j)]) for j in range(k)] for i in range(m)])
        right = np.array([[float(b.tensor[(j, i)]) for j in range(n)] for i in range(k)])
        part = columns.part(n)
        part[...] = left @ right + (part if adds else 0)

    _started(work)


def signal_matmuls(at: Pointer) -> None:
    """Arrives at a signal when all matmuls issued so far are done."""
    signal = HERE.block.signals[at.address()]
    _started(signal.arrive, signal)


def load_columns(columns: Columns, to: Any) -> None:
    """Loads the row of this thread into registers."""
    count = memory.size(to)
    row = columns.part(count)[HERE.number % ROWS]
    for n in range(count):
        (to.iterator + n).store(Float32(row[n]))
