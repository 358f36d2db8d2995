"""A case: how a candidate differs from what is emitted, and what must become of it. For tests."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import pytest

from backends.registry import backend_for, served_by, target
from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from ir.parse.parse import parse_spec
from ir.print import spec_text
from search.core.candidate import Candidate
from search.evaluator.sandbox import Limits
from search.evaluator.stages import Bench
from tests.cheats.kernels import WORKLOADS

# By the name that cases use: a target and a backend that run without a device.
PLACES = {
    "npu": ("npu_small", "sim"),
    "cpu": ("cpu", "cpp"),
    "cuda": ("h200", "cuda"),
    "triton": ("mi300", "triton"),
    "hip": ("mi300", "hip"),
}
SECRET = "a secret of these tests"


@dataclass(frozen=True, slots=True)
class Case:
    """One candidate."""

    name: str
    why: str  # it must be refused, or accepted
    kernel: str  # of `kernels.WORKLOADS`
    place: str  # of `PLACES`
    # Equations other than the kernel's own: the lines of its body.
    equations: str = ""
    edits: tuple[
        tuple[str, str], ...
    ] = ()  # of the emitted source: the first of one text to another
    # The stage that refuses it, and a part of what it says; empty: it is accepted.
    stage: str = ""
    said: str = ""
    group: int = 0  # of the kinds of cheats, for a reader

    def candidate(self) -> Candidate:
        """The candidate, by the seed schedule of its equations."""
        workload = WORKLOADS[self.kernel]
        chip, name = PLACES[self.place]
        backend = backend_for(target(chip), name)
        machine = served_by(target(chip), backend)
        spec = workload.spec
        if self.equations:
            head, _, _ = spec_text(spec).partition('"""')
            lines = "".join(f"    {line.strip()}\n" for line in self.equations.strip().splitlines())
            outputs = ", ".join(t.name for t in spec.outputs)
            spec = parse_spec(f'{head}"""Other equations."""\n{lines}    return {outputs}\n')
        schedule = autoschedule(spec, machine, workload.tune)
        source = None
        if self.edits:
            source = backend.emit(lower(spec, schedule, machine, workload.tune), machine)
            for old, new in self.edits:
                assert old in source, f"{self.name}: `{old}` is not in\n{source}"
                source = source.replace(old, new, 1)
        return Candidate(spec_text(spec), str(schedule), chip, name, source)


def bench(kernel: str, place: str) -> Bench:
    """What the cases of a kernel at a place are tried on."""
    workload = WORKLOADS[kernel]
    chip, name = PLACES[place]
    machine = served_by(target(chip), backend_for(target(chip), name))
    return Bench(
        spec_text(workload.spec),
        machine,
        partial(backend_for, machine, name),
        workload.tune,
        workload.checks,
        secret=SECRET,
        # What loops takes processor time; by the clock a good one may take long.
        limits=Limits(cpu=20, seconds=1800.0, memory=2 << 30),
    )


def require(place: str) -> None:
    """Skips a test where nothing can run kernels at a place."""
    chip, name = PLACES[place]
    can = backend_for(target(chip), name).available(target(chip))
    if not can.get("correct_by"):
        pytest.skip(str(can.get("why")))
