"""Coroutine-like scheduling of a block's roles: each has its own thread of execution, and one runs at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from backends.gpu.threads.interpreter import faults
from backends.gpu.threads.interpreter.faults import ThreadFault
from backends.gpu.threads.interpreter.state import Block


class _Stopped(BaseException):
    """Ends a role whose block has failed elsewhere."""


class Turns:
    """Runs roles one at a time: one runs until it waits for another one, then the next one runs."""

    def __init__(self, handed: Callable[[int], None]):
        self.handed = handed  # called with the number of the role that resumes
        self.progress = 0  # arrivals and copies so far
        self._own = 0
        self._running = False
        self._stop = False
        self._ended: list[bool] = []
        self._stuck: list[int] = []  # the progress at which each role began to wait
        self._signals: list[threading.Semaphore] = []
        self._failure: BaseException | None = None

    def run(self, *roles: Callable[[], None]) -> None:
        """Runs all roles to their ends; re-raises the first exception."""
        count = len(roles)
        self._running, self._stop, self._failure, self._own = True, False, None, 0
        self._ended, self._stuck = [False] * count, [-1] * count
        self._signals = [threading.Semaphore(0) for _ in roles]
        workers = [
            threading.Thread(target=self._worker, args=(n, roles[n]), daemon=True)
            for n in range(1, count)
        ]
        for worker in workers:
            worker.start()
        try:
            roles[0]()
            self._ended[0] = True
            while not all(self._ended):
                self._hand_over()
        finally:
            self._stop = True
            for signal in self._signals[1:]:
                signal.release()
            for worker in workers:
                worker.join()
            self._running = False

    def _worker(self, number: int, work: Callable[[], None]) -> None:
        self._signals[number].acquire()
        if self._stop:
            return
        try:
            with np.errstate(all="ignore"):
                work()
        except _Stopped:
            return
        except BaseException as failure:
            self._failure = failure
        self._ended[number] = True
        self._go(0 if self._failure is not None else self._next(number))

    def wait(self, block: Block) -> None:
        """Lets another role run. Raises ThreadFault where nothing has happened since all of them wait."""
        if self._running:
            self._stuck[self._own] = self.progress
        waits = zip(self._ended, self._stuck)
        if not self._running or all(ended or at == self.progress for ended, at in waits):
            raise _deadlock(block)
        self._hand_over()

    def offer(self, again: bool = False) -> None:
        """Lets each other role, if any, run until it waits. again: repeats this until all of them wait for this one."""
        before = None
        while self._running and self._next(self._own) != self._own and before != self.progress:
            before = self.progress
            self._hand_over()
            if not again:
                return

    def _next(self, own: int) -> int:
        """The next role that has not ended; the first where all have."""
        count = len(self._ended)
        after = ((own + n) % count for n in range(1, count + 1))
        return next((n for n in after if not self._ended[n]), 0)

    def _hand_over(self) -> None:
        own = self._own
        self._go(self._next(own))
        self._signals[own].acquire()
        if own == 0 and self._failure is not None:
            raise self._failure
        if self._stop:
            raise _Stopped

    def _go(self, role: int) -> None:
        self._own = role
        self.handed(role)
        self._signals[role].release()


def _deadlock(block: Block) -> ThreadFault:
    """The fault of a deadlock."""
    return block.fault(
        faults.DEADLOCK,
        "nothing in the block or its cluster goes on, nor in others that run: each role waits for a phase "
        "that nothing ends, or for a flag that nothing raises",
        "let every stage be filled and freed once in each round, and count parities with the rounds; "
        "await the flags of blocks with lower numbers alone",
    )
