"""Threads of concurrent blocks. They run cooperatively: each runs until it waits for others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

WARP = 32


class Deadlock(RuntimeError):
    """All remaining threads wait."""


class Turn:
    """A coroutine on a thread of Python: it runs until it yields, and resumes when it is called again."""

    def __init__(self, work: Callable[[], None]):
        self.mine, self.others = threading.Semaphore(0), threading.Semaphore(0)
        self.ended = False
        self.fault: BaseException | None = None
        self.thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self.thread.start()

    def _run(self, work: Callable[[], None]) -> None:
        self.mine.acquire()
        try:
            work()
        except BaseException as fault:
            self.fault = fault
        self.ended = True
        self.others.release()

    def go(self) -> None:
        """Resumes it until it yields."""
        self.mine.release()
        self.others.acquire()
        if self.fault is not None:
            raise self.fault

    def give_back(self) -> None:
        """Yields, from inside."""
        self.others.release()
        self.mine.acquire()


class Here:
    """The current thread: its number and its block."""

    number: int = 0
    block: Any = None


HERE = Here()


class Group:
    """Threads that act together: each contributes a value, one of them computes, and each gets its result."""

    def __init__(self, count: int):
        self.count, self.turn = count, 0
        self.given: dict[int, Any] = {}
        self.made: dict[int, Any] = {}  # results by round

    def together(self, mine: Any, work: Callable[[dict[int, Any]], Any]) -> Any:
        """The result of `work` on the values of all threads, by their numbers."""
        turn = self.turn
        self.given[HERE.number] = mine
        if len(self.given) == self.count:
            self.made = {turn: work(self.given)}
            self.given, self.turn = {}, turn + 1
        else:
            HERE.block.wait(lambda: self.turn > turn)
        return self.made[turn]


class Signal:
    """An mbarrier."""

    def __init__(self, arrivals: int):
        self.arrivals, self.left, self.bytes, self.phase = arrivals, arrivals, 0, 0

    def arrive(self, expected: int = 0) -> None:
        """A thread arrives. expected: adds bytes to the transaction count."""
        self.left -= 1
        self.bytes += expected
        self._settle()

    def received(self, count: int) -> None:
        """Bytes of a transaction arrive."""
        self.bytes -= count
        self._settle()

    def _settle(self) -> None:
        if self.left < 0:
            raise RuntimeError("more threads arrive than a phase counts")
        if not self.left and not self.bytes:
            self.left, self.phase = self.arrivals, self.phase + 1

    def wait(self, parity: int) -> None:
        """Waits until the phase with a parity is complete; the first phase has parity 0. Matmuls
        that the signal reports are then computed."""
        block = HERE.block

        def over() -> bool:
            while self.phase % 2 == parity and any(told is self for told, _ in block.matmuls):
                block.matmuls.pop(0)[1]()
            return self.phase % 2 != parity

        block.wait(over)


class Block:
    """A thread block with its shared memory, which initially holds NaN bytes."""

    def __init__(self, number: int, grid: int, threads: int, shared: int):
        self.number, self.grid, self.threads = number, grid, threads
        self.memory = np.full(shared, 0xFF, np.uint8)
        self.signals: dict[int, Signal] = {}
        self.groups: dict[Any, Group] = {}
        self.waits: dict[int, Callable[[], bool]] = {}
        self.turns: dict[int, Turn] = {}
        self.columns: np.ndarray | None = None  # tensor memory columns that it has allocated
        # Asynchronous work in order, each with the signal that it arrives at, if any.
        self.matmuls: list[tuple[Signal | None, Callable[[], None]]] = []
        self.cluster: Sequence[Block] = (self,)  # blocks by their rank in the cluster
        self.cluster_barrier = Signal(threads)  # one for all blocks of the cluster

    def group(self, key: Any, count: int) -> Group:
        """The threads that share a key."""
        if key not in self.groups:
            self.groups[key] = Group(count)
        return self.groups[key]

    def wait(self, over: Callable[[], bool]) -> None:
        """Runs other threads until a condition holds."""
        number = HERE.number
        while not over():
            self.waits[number] = over
            self.turns[number].give_back()


def clustered(blocks: Sequence[Block]) -> None:
    """Makes some blocks one cluster."""
    barrier = Signal(sum(block.threads for block in blocks))
    for block in blocks:
        block.cluster, block.cluster_barrier = blocks, barrier


def run(blocks: Sequence[Block], work: Callable[[], None]) -> None:
    """Runs all threads of some blocks concurrently, the last thread first. It raises the first fault."""
    left = [(block, n) for block in reversed(blocks) for n in reversed(range(block.threads))]
    for block, number in left:
        block.turns[number] = Turn(work)
    while left:
        moved = False
        for block, number in list(left):
            wait = block.waits.get(number)
            if wait is not None and not wait():
                continue
            moved = True
            block.waits.pop(number, None)
            HERE.number, HERE.block = number, block
            block.turns[number].go()
            if block.turns[number].ended:
                left.remove((block, number))
        if not moved:
            waiting = sorted((block.number, number) for block, number in left)
            raise Deadlock(f"threads {waiting[:8]} (block, thread) and others wait")


def warp() -> Group:
    """The warp of the thread."""
    return HERE.block.group(("warp", HERE.number // WARP), WARP)


def warpgroup() -> Group:
    """The warpgroup of the thread."""
    return HERE.block.group(("warpgroup", HERE.number // 128), 128)
