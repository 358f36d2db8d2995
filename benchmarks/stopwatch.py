"""A stopwatch: a process that times built kernels on a device, one after the other.

A kernel that crashes the device or does not return ends only this process, not the program. The
next kernel gets a new process.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ir.machine import Machine
from ir.nest.nest import LoopNest

# Limit until a process is ready: its imports are slow, and it opens the device.
START_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class TimingJob:
    """A built kernel."""

    file: Path  # File of its source.
    backend: str  # Name of the backend that built it.
    machine: Machine
    nest: LoopNest
    sizes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of timing a job."""

    us: float = 0.0  # The median, p20 and p80 of the runs.
    p20: float = 0.0
    p80: float = 0.0
    # Distance of the results from those of the kernel's first schedule, over their norm.
    apart: float = 0.0
    reason: str = ""  # Why there is no time.
    row: Mapping[str, Any] = field(default_factory=dict)  # More results of the job.


def _serve(pipe: Any, make: Callable[[], Callable[[Any], Reading]]) -> None:
    """Runs in the process: answers jobs until the pipe closes."""
    bench = make()
    pipe.send(None)  # Ready.
    while True:
        try:
            job = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(bench(job))
        except Exception as error:  # Untrusted code: its failure is a reading without a time.
            pipe.send(Reading(reason=f"{type(error).__name__}: {str(error)[:400]}"))


@dataclass(slots=True)
class Stopwatch:
    """Times jobs in its own process, which is replaced if a job breaks it."""

    # Returns the function that times a job in the process.
    make: Callable[[], Callable[[Any], Reading]]
    seconds: float = 60.0  # Limit of a job.
    _process: Any = field(default=None, init=False)
    _pipe: Any = field(default=None, init=False)

    def __call__(self, job: Any) -> Reading:
        """Returns the reading of a job, such as a `TimingJob`. It has a reason if the job fails,
        dies or takes too long."""
        try:
            if not self._start():
                self.close()
                return Reading(reason=f"no process is ready in {START_SECONDS:g} s")
            self._pipe.send(job)
            if not self._pipe.poll(self.seconds):
                self.close()
                return Reading(reason=f"no answer in {self.seconds:g} s")
            found = self._pipe.recv()
        except (EOFError, OSError):
            code = self._process.exitcode
            self.close()
            return Reading(reason=f"the process that ran it died ({code})")
        if "CUDA error" in found.reason or "HIP error" in found.reason:
            self.close()  # The device's context is gone.
        return found

    def close(self) -> None:
        """Ends the process."""
        if self._process is None:
            return
        self._pipe.close()
        with suppress(OSError):
            self._process.kill()
        self._process.join()
        self._process = self._pipe = None

    def _start(self) -> bool:
        """Starts a process if there is none. Returns whether it is ready. The start does not count
        as part of a job."""
        if self._process is not None:
            return True
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self.make), daemon=True)
        self._process.start()
        theirs.close()
        if not self._pipe.poll(START_SECONDS):
            return False
        self._pipe.recv()
        return True
