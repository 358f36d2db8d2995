"""A task's trial: the winners of all its kernels, run against the task's reference and its tests."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from backends.compiled import Compiled, Kernel
from backends.registry import backend_for
from frontends.kernelbench.apart import apart
from ir.errors import KernelError
from ir.lower import lower
from ir.machine import Machine
from ir.network import Network
from ir.parse import parse_schedule, parse_spec
from ir.spec import Spec
from search.command.module import Module
from search.command.promotion import winner_source
from search.command.session import Ended

SECONDS = 600.0  # that all comparisons and tests may take, builds included
Results = Sequence[tuple[str, str]]  # of comparisons and tests: name, and fault or nothing


@dataclass(frozen=True, slots=True)
class Winner:
    """The best candidate of a kernel: texts."""

    formulation: str
    schedule: str
    source: str


@dataclass(frozen=True, slots=True)
class Trial:
    """What runs apart. backend: its name."""

    file: str
    name: str
    spec: Spec
    network: Network
    machine: Machine
    backend: str
    winners: Mapping[str, Winner]


def tried(module: Module, network: Network, ended: Sequence[Ended]) -> Results:
    """The results of a task on a target; what keeps it from being run is one.

    ended: the searches of the network's kernels, each with a correct candidate.
    """
    problem = ended[0].problem
    winners = {}
    for one in ended:
        best = one.outcome.best
        assert best is not None, "a kernel without a correct candidate is not tried"
        text = winner_source(one.problem, one.outcome)
        winners[one.outcome.settings.kernel] = Winner(best.formulation, best.schedule, text)
    trial = Trial(str(module.file), module.spec.name, module.spec, network, problem.machine,
                  problem.settings.backend, winners)  # fmt: skip
    try:
        return apart(_results, trial, seconds=SECONDS)
    except KernelError as error:
        return [("the task", str(error))]


def text(module: Module, target: str, found: Results) -> str:
    """Lines for a person: how many are right, and each that is not."""
    faults = [f"\n  {one}: {fault}" for one, fault in found if fault]
    sizes = ", ".join(f"{size}={number}" for size, number in (module.shape or {}).items())
    at = f" at {sizes}" if sizes else ""
    shapes = f"{module.others} other shape{'s' * (module.others != 1)}"
    left = f"; {shapes} not run" if module.others else ""
    right = f"{len(found) - len(faults)} of {len(found)} comparisons and tests hold"
    return f"{module.spec.name} on {target}{at}: {right}{left}" + "".join(faults)


def _results(trial: Trial) -> Results:
    from frontends.kernelbench.task import Task

    quiet = StringIO()  # stdout is the command's
    with tempfile.TemporaryDirectory(prefix="task-") as folder, redirect_stdout(quiet):
        compiled = _compiled(trial, Path(folder))
        return list(Task.read(trial.file).opened().results(trial.name, trial.spec, compiled))


def _compiled(trial: Trial, folder: Path) -> Compiled:
    backend, kernels = backend_for(trial.machine, trial.backend), {}
    for spec in trial.network.kernels():
        winner = trial.winners[spec.name]
        formulation, schedule = parse_spec(winner.formulation), parse_schedule(winner.schedule)
        nest = lower(formulation, schedule, trial.machine, {})
        place = folder / spec.name
        place.mkdir()
        built = backend.build(winner.source, nest, trial.machine, place)
        kernels[spec] = Kernel(spec, nest, winner.source, built)
    return Compiled(trial.network, trial.machine, backend, kernels)
