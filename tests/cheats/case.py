"""A case: how a candidate differs from what is emitted, and what must become of it. For tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from backends.registry import backend_for, served_by, target
from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from ir.parse.parse import parse_spec
from ir.parse.schedule import parse_schedule
from ir.print import spec_text
from ir.workload import Sizes
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
# Of sources that are edited here, by target and kernel: what a time model chooses may change, and the text with it.
SCHEDULES = {
    ("mi300", "twice"): """schedule(twice)
tile(m, size=1)
tile(k, size=128)
place(m.outer, level=grid)
place(k.outer, level=grid)
threads(y, count=64)
"""
}
Places = Mapping[str, tuple[str, str]]


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

    def candidate(self, places: Places = PLACES) -> Candidate:
        """The candidate, by the seed schedule of its equations, or that of `SCHEDULES`. ValueError where what is edited is not
        in what is emitted there."""
        workload = WORKLOADS[self.kernel]
        chip, name = places[self.place]
        backend = backend_for(target(chip), name)
        machine = served_by(target(chip), backend)
        spec = workload.spec
        if self.equations:
            head, _, _ = spec_text(spec).partition('"""')
            lines = "".join(f"    {line.strip()}\n" for line in self.equations.strip().splitlines())
            outputs = ", ".join(t.name for t in spec.outputs)
            spec = parse_spec(f'{head}"""Other equations."""\n{lines}    return {outputs}\n')
        schedule = autoschedule(spec, machine, tuned(self.kernel))
        if self.edits and (chip, self.kernel) in SCHEDULES:
            schedule = parse_schedule(SCHEDULES[chip, self.kernel])
        source = None
        if self.edits:
            source = backend.emit(lower(spec, schedule, machine, tuned(self.kernel)), machine)
            for old, new in self.edits:
                if old not in source:
                    raise ValueError(f"{self.name}: `{old}` is not in\n{source}")
                source = source.replace(old, new, 1)
        return Candidate(spec_text(spec), str(schedule), chip, name, source)


def bench(
    kernel: str, place: str, places: Places = PLACES, secret: str = SECRET, cpu: int = 20
) -> Bench:
    """What the cases of a kernel at a place are tried on. cpu: seconds of a processor for each."""
    workload = WORKLOADS[kernel]
    chip, name = places[place]
    machine = served_by(target(chip), backend_for(target(chip), name))
    return Bench(
        spec_text(workload.spec),
        machine,
        partial(backend_for, machine, name),
        tuned(kernel),
        workload.checks,
        secret=secret,
        # What loops takes processor time; by the clock a good one may take long.
        limits=Limits(cpu=cpu, seconds=1800.0, memory=2 << 30),
    )


def tuned(kernel: str) -> Sizes:
    """The sizes that a kernel is timed at."""
    sizes = WORKLOADS[kernel].tune
    assert sizes is not None, "each kernel of these tests has some"
    return sizes


def lacking(place: str) -> str:
    """Why nothing can run kernels at a place; empty where something can."""
    chip, name = PLACES[place]
    can = backend_for(target(chip), name).available(target(chip))
    return "" if can.get("correct_by") else str(can.get("why"))
