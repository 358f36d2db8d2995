"""A bench: times kernels on the device of its process, and compares their results."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from backends.backend import Built, Enqueues
from backends.gpu.device.gpu import CudaDevice
from backends.gpu.device.nodes import DEVICE
from backends.gpu.device.timing import measure
from backends.parameters import parameters
from backends.registry import backend
from benchmarks.inputs import draw, poisoned
from benchmarks.stopwatch import Reading, TimingJob
from ir.sizes import bind, value

SETS = 2  # Sets of inputs that the calls alternate between.
SECONDS = 0.06  # Approximate time of the measured calls, in seconds.
SEED = 7


class TimingBench:
    """The state of one process: the device, and the inputs and results of the current kernel."""

    def __init__(self, device: Any = None, place: str = DEVICE):
        self.place = place
        self.device = device or CudaDevice()
        self.kernel = ""
        self.sets: list[list[torch.Tensor]] = []
        self.first: list[torch.Tensor] = []

    def __call__(self, job: TimingJob) -> Reading:
        """Times a job. Raises what fails in it."""
        bound = bind(job.nest.spec, dict(job.sizes))
        if self.kernel != job.nest.spec.name:
            self.sets, self.first = [], []
            self.sets = [draw(job.nest.spec, job.sizes, self.place, SEED + n) for n in range(SETS)]
            self.kernel = job.nest.spec.name
        rest = [p for p in parameters(job.nest) if p.role != "input"]
        made = [
            poisoned(p.dtype, tuple(value(e, bound) for e in p.shape), self.place) for p in rest
        ]
        language = backend(job.backend)
        assert isinstance(language, Enqueues), f"`{job.backend}` enqueues nothing"
        launch = language.enqueued(Built(job.file), job.nest, job.machine, job.sizes)
        call = partial(_call, launch, made)
        call(self.sets[0])
        self.device.wait()
        outputs = [t for p, t in zip(rest, made, strict=True) if p.role == "output"]
        apart = self._apart(outputs)
        times = measure(call, self.sets, self.device, SECONDS)
        return Reading(times.us, times.p20, times.p80, apart)

    def _apart(self, outputs: list[torch.Tensor]) -> float:
        """Returns the distance between results and those of the first schedule. It keeps the first
        ones."""
        if not self.first:
            self.first = [t.clone() for t in outputs]
        worst = 0.0
        for ours, first in zip(outputs, self.first, strict=True):
            norm = float(first.double().norm())
            far = float((ours.double() - first.double()).norm())
            worst = max(worst, far / norm if norm else far)
        return worst if worst == worst else float("inf")


def _call(launch: Callable[..., Any], rest: list[torch.Tensor], inputs: list[torch.Tensor]) -> None:
    launch(*inputs, *rest)
