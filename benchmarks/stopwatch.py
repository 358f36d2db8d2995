"""A stopwatch: a process that times built kernels on a device, one after the other.

A kernel that crashes the device or does not come back takes the process with it, not the
program; the next one gets a fresh process.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from triton import knobs

from backends.triton.compile import CACHE
from backends.triton.gpu import DEVICE, Gpu
from backends.triton.module import launcher
from backends.triton.signature import parameters
from backends.triton.timing import measure
from benchmarks.inputs import draw, poisoned
from ir.nest import LoopNest
from ir.sizes import bind, value

SETS = 2  # of inputs that calls go around
SECONDS = 0.06  # of measured calls, about
SEED = 7


@dataclass(frozen=True, slots=True)
class Job:
    """A built kernel. file: of its source."""

    file: Path
    nest: LoopNest
    sizes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Reading:
    """us: the median, p20 and p80 of the runs; reason: why there is none.  apart: distance of
    the results from those of the kernel's first schedule, over their norm."""

    us: float = 0.0
    p20: float = 0.0
    p80: float = 0.0
    apart: float = 0.0
    reason: str = ""


class Bench:
    """What one process keeps: the device, and of the kernel at hand inputs and results."""

    def __init__(self, device: Any = None, place: str = DEVICE):
        self.place = place
        self.device = device or Gpu()
        self.kernel = ""
        self.sets: list[list[torch.Tensor]] = []
        self.first: list[torch.Tensor] = []

    def __call__(self, job: Job) -> Reading:
        """Times a job; what goes wrong in it is raised."""
        bound = bind(job.nest.spec, dict(job.sizes))
        if self.kernel != job.nest.spec.name:
            self.sets, self.first = [], []
            self.sets = [draw(job.nest.spec, job.sizes, self.place, SEED + n) for n in range(SETS)]
            self.kernel = job.nest.spec.name
        rest = [p for p in parameters(job.nest) if p.role != "input"]
        made = [poisoned(p.dtype, tuple(value(e, bound) for e in p.shape), self.place)
                for p in rest]  # fmt: skip
        with knobs.cache.scope():
            knobs.cache.dir = str(job.file.parent / CACHE)
            launch = launcher(job.file, "time")
            call = partial(_call, launch, made)
            call(self.sets[0])
            self.device.wait()
            outputs = [t for p, t in zip(rest, made, strict=True) if p.role == "output"]
            apart = self._apart(outputs)
            times = measure(call, self.sets, self.device, SECONDS)
        return Reading(times.us, times.p20, times.p80, apart)

    def _apart(self, outputs: list[torch.Tensor]) -> float:
        """How far results lie from the first schedule's; the first ones are kept."""
        if not self.first:
            self.first = [t.clone() for t in outputs]
        worst = 0.0
        for ours, first in zip(outputs, self.first, strict=True):
            norm = float(first.double().norm())
            far = float((ours.double() - first.double()).norm())
            worst = max(worst, far / norm if norm else far)
        return worst if worst == worst else float("inf")


def _call(
    launch: Callable[..., Any], rest: list[torch.Tensor], inputs: list[torch.Tensor]
) -> None:
    launch(*inputs, *rest)


def _serve(pipe: Any, make: Callable[[], Callable[[Job], Reading]]) -> None:
    """The process: answers jobs until the pipe closes."""
    bench = make()
    while True:
        try:
            job = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(bench(job))
        except Exception as error:  # foreign code: its fault is a reading without a time
            pipe.send(Reading(reason=f"{type(error).__name__}: {str(error)[:400]}"))


@dataclass(slots=True)
class Stopwatch:
    """Times jobs in a process of its own, which is replaced when one breaks it.

    make: gives the process what times a job.  seconds: the most that a job may take.
    """

    make: Callable[[], Callable[[Job], Reading]] = Bench
    seconds: float = 60.0
    _process: Any = field(default=None, init=False)
    _pipe: Any = field(default=None, init=False)

    def __call__(self, job: Job) -> Reading:
        """The reading of a job; one with a reason where it fails, dies or takes too long."""
        self._start()
        try:
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
            self.close()  # the device's context is gone
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

    def _start(self) -> None:
        if self._process is not None:
            return
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self.make), daemon=True)
        self._process.start()
        theirs.close()
