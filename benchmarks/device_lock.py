"""A lock on the device, and a way to stop the other processes of a run while one takes a time.

The holder of the lock may use the device for work that must not overlap with timing, such as a
check or a compiler's own timing. To take a time, it also asks the run that started it to stop all
other processes of the run.
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

ALONE, DONE, GRANTED = b"a", b"d", b"g"  # Messages between a process and its run.


@dataclass(slots=True)
class DeviceLock:
    """The lock of a device. ask, answer: descriptors to and from the run. None if there are no
    other processes."""

    file: Path
    ask: int | None = None
    answer: int | None = None
    _guard: threading.RLock = field(default_factory=threading.RLock)
    _depth: int = 0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Holds the lock inside the context. The same thread may enter again."""
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
                        # Explicit, because a process that was forked meanwhile has the descriptor
                        # too.
                        fcntl.flock(place, fcntl.LOCK_UN)
            finally:
                os.close(place)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Holds the lock and stops all other processes of the run inside the context."""
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
    """Makes PyTorch's compiler hold the lock while it times its choices, inside the context."""
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
    """The running time, in whole seconds."""

    seconds: int = 0


@contextmanager
def running_limit(seconds: float) -> Iterator[RunningTime]:
    """Raises OutOfTime in the main thread after so many seconds in which this process was not
    stopped."""
    ran = RunningTime()

    def tick(*_: object) -> None:
        ran.seconds += 1  # While the process is stopped, at most one signal is pending.
        if ran.seconds > math.ceil(seconds):
            raise OutOfTime(f"it took longer than {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, tick)
    signal.setitimer(signal.ITIMER_REAL, 1.0, 1.0)
    try:
        yield ran
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
