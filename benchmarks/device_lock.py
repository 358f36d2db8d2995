"""One process at a time has the device: a lock, and the others stopped while a time is taken.

A process that holds the lock may use the device for what must not run at the same time as a time is
taken, such as a check or a compiler's own timing. To take a time it also asks the run that started it
to stop all other processes of the run.
"""

from __future__ import annotations

import fcntl
import functools
import math
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.race import OutOfTime

ALONE, DONE, GRANTED = b"a", b"d", b"g"  # what a process and its run say to each other


@dataclass(slots=True)
class DeviceLock:
    """The lock of a device. ask, answer: descriptors to and from the run; None: nobody else is there."""

    file: Path
    ask: int | None = None
    answer: int | None = None
    _guard: threading.RLock = field(default_factory=threading.RLock)
    _depth: int = 0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Within it no other process holds the lock. The same thread may enter again."""
        with self._guard:
            place = os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                if not self._depth:
                    fcntl.flock(place, fcntl.LOCK_EX)
                self._depth += 1
                try:
                    yield
                finally:
                    self._depth -= 1
                    if not self._depth:
                        # Said, as a process that was forked meanwhile has the descriptor too.
                        fcntl.flock(place, fcntl.LOCK_UN)
            finally:
                os.close(place)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Within it this process holds the lock, and all others of the run are stopped."""
        with self.held():
            self._said(ALONE)
            try:
                yield
            finally:
                self._said(DONE)

    def _said(self, word: bytes) -> None:
        if self.ask is None or self.answer is None:
            return
        os.write(self.ask, word)
        if os.read(self.answer, 1) != GRANTED:
            raise OSError("the run that started this process is gone")


@contextmanager
def compilers_take_turns(lock: DeviceLock) -> Iterator[None]:
    """Within it PyTorch's compiler holds the lock while it times what it chooses from."""
    from torch._inductor.runtime import benchmarking

    found = [
        (kind, name, vars(kind)[name])
        for kind in vars(benchmarking).values()
        if isinstance(kind, type)
        for name in ("benchmark_gpu", "benchmark_gpu_with_cuda_graph")
        if name in vars(kind)
    ]
    for kind, name, function in found:
        setattr(kind, name, _locked(function, lock))
    try:
        yield
    finally:
        for kind, name, function in found:
            setattr(kind, name, function)


def _locked(function: Callable[..., Any], lock: DeviceLock) -> Callable[..., Any]:
    @functools.wraps(function)
    def locked(*args: Any, **kwargs: Any) -> Any:
        with lock.held():
            return function(*args, **kwargs)

    return locked


@dataclass(slots=True)
class RunningTime:
    """For how many whole seconds something ran."""

    seconds: int = 0


@contextmanager
def running_limit(seconds: float) -> Iterator[RunningTime]:
    """Raises OutOfTime in the main thread after some seconds in which this process was not stopped."""
    ran = RunningTime()

    def tick(*_: object) -> None:
        ran.seconds += 1  # while it is stopped, one signal at most waits
        if ran.seconds > math.ceil(seconds):
            raise OutOfTime(f"it took longer than {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, tick)
    signal.setitimer(signal.ITIMER_REAL, 1.0, 1.0)
    try:
        yield ran
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
