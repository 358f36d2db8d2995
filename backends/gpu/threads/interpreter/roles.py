"""Roles of a block: threads with programs of their own, which take turns."""

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
    """Lets two roles run, one at a time: one goes on until it waits for what the other does."""

    def __init__(self, handed: Callable[[int], None]):
        self.handed = handed  # called with the number of the role that goes on
        self.progress = 0  # arrivals and copies so far
        self._stuck = -1  # the progress at which a role began to wait
        self._own = 0
        self._running = False
        self._stop = False
        self._ended = [False, False]
        self._signals = (threading.Semaphore(0), threading.Semaphore(0))
        self._failure: BaseException | None = None

    def run(self, first: Callable[[], None], second: Callable[[], None]) -> None:
        """Runs both roles to their ends; raises what one of them does."""
        self._running, self._stop, self._ended, self._failure = True, False, [False, False], None
        self._own, self._stuck = 0, -1
        worker = threading.Thread(target=self._second, args=(second,), daemon=True)
        worker.start()
        try:
            first()
            self._ended[0] = True
            if not self._ended[1]:
                self._hand_over()
        except BaseException:
            self._stop = True
            self._signals[1].release()
            raise
        finally:
            worker.join()
            self._running = False
        if self._failure is not None:
            raise self._failure

    def _second(self, work: Callable[[], None]) -> None:
        self._signals[1].acquire()
        try:
            if not self._stop:
                with np.errstate(all="ignore"):
                    work()
        except _Stopped:
            return
        except BaseException as failure:
            self._failure = failure
        self._ended[1] = True
        self._go(0)

    def wait(self, block: Block) -> None:
        """Lets the other role run; ThreadFault where nothing happened since that one waits."""
        other = 1 - self._own
        if not self._running or self._ended[other] or self._stuck == self.progress:
            raise _deadlock(block)
        self._stuck = self.progress
        self._hand_over()

    def offer(self) -> None:
        """Lets the other role run, if there is one, as far as it can go."""
        if self._running and not self._ended[1 - self._own]:
            self._hand_over()

    def _hand_over(self) -> None:
        own = self._own
        self._go(1 - own)
        self._signals[own].acquire()
        if self._stop:
            raise _Stopped
        if own == 0 and self._failure is not None:
            raise self._failure

    def _go(self, role: int) -> None:
        self._own = role
        self.handed(role)
        self._signals[role].release()


def _deadlock(block: Block) -> ThreadFault:
    """The fault of roles that all wait."""
    return block.fault(
        faults.DEADLOCK,
        "no role of the block goes on: each waits for a phase that nothing ends",
        "let every stage be filled and freed once in each round, and count parities with the rounds",
    )
