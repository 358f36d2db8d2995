"""An attempt at a problem in its own process: scaled, imported, scheduled, lowered, built, run and
judged.

After each stage it writes what is known to a file, which survives a failure of the process.
"""

from __future__ import annotations

import copy
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_map

from backends.compiled import Compiled, Kernels, built
from benchmarks.attempts import serving
from benchmarks.kernelbench.verdict import ThreeResults, verdict
from benchmarks.notes import Notes
from frontends.kernelbench.problem import Problem, ProblemRun
from frontends.kernelbench.scaled import scaled
from frontends.pytorch.bound import BoundCall, Run
from frontends.pytorch.call import state_of
from frontends.pytorch.imported import Imported
from frontends.pytorch.module import imported
from frontends.pytorch.redrawn import redrawn
from ir.lower.lower import lower
from ir.partition.partition import partition
from ir.reference.reference import evaluate_storage
from ir.spec import Spec

SEEDS = (0, 1)


@dataclass(frozen=True, slots=True)
class ProblemAttempt:
    """The task of a process."""

    path: Path
    target: str
    reduced: bool
    notes: Path  # The file of its row.
    backend: str | None = None  # None: the target's first.


def attempt(task: ProblemAttempt) -> dict[str, Any]:
    """Returns the row of a problem. Every failure becomes its reason."""
    notes = Notes(task.notes)
    with notes.faults(), tempfile.TemporaryDirectory(prefix="problem-") as folder:
        _attempt(task, notes, Path(folder))
    return notes.row


def _attempt(task: ProblemAttempt, notes: Notes, folder: Path) -> None:
    problem = Problem.read(task.path)
    if task.reduced:
        with notes.stage("scale"):
            problem = scaled(problem)
    with notes.stage("read"):
        calls = [problem.made(seed) for seed in SEEDS]
    shapes = [list(t.shape) for t in calls[0].inputs if isinstance(t, torch.Tensor)]
    notes.note(shapes=shapes)
    with notes.stage("import"):
        # Made again, not copied: a copy shares what the module holds in functions.
        made = imported(problem.made(SEEDS[0]).model, calls[0].inputs, name=problem.name)
    against = "module" if made.seed is None else "module, with the draws of its equations"
    notes.note(equations=len(made.spec.equations), against=against)
    compiled = _compiled(made, task, notes, folder)
    with notes.stage("run"), torch.no_grad():
        got = [_bound(made, call, compiled)(*_copied(call.inputs)) for call in calls]
    with notes.stage("check"):
        again = [problem.made(seed).model for seed in SEEDS]
        trials = [_trial(made, *one) for one in zip(calls, got, again, strict=True)]
        found = verdict(trials)
    notes.note(rel_err=found.rel_err, reference_rel_err=found.reference_rel_err)
    if found.reason:
        notes.note(reason=found.reason)
    else:
        notes.row.pop("stage")
        notes.note(correct=True)


def _compiled(made: Imported, task: ProblemAttempt, notes: Notes, folder: Path) -> Compiled:
    machine, backend = serving(task.target, task.backend)
    kernels = Kernels(machine, backend)
    tried: list[Spec] = []

    def emitted(spec: Spec) -> None:
        tried.append(spec)
        kernels.emit(spec)

    with notes.stage("schedule"):
        network = partition(made.spec, {}, made.aliases, emitted, takes=kernels.takes)
    with notes.stage("lower"):  # Again, with the chosen schedules.
        for spec in tried:
            nest = lower(spec, kernels.emit(spec)[0].schedule, machine, {})
            kernels.backend.emit(nest, machine)
    notes.note(
        steps=len(network.steps),
        kernels=len(network.kernels()),
        lowered=len(tried),
        launches=sum(len(kernels.emit(s.spec)[0].launches) for s in network.steps),
    )
    with notes.stage("build"):
        return built(network, kernels, folder)


def _bound(made: Imported, call: ProblemRun, run: Run) -> BoundCall:
    return BoundCall(made, state_of(made, call.model), run)


def _trial(made: Imported, call: ProblemRun, got: Any, again: torch.nn.Module) -> ThreeResults:
    """Returns PyTorch's results at the problem's dtypes, and those in float64 by the same module
    made again.

    If the module draws random numbers, it uses those of the equations, because no two libraries
    draw the same.
    """
    plain, truth = copy.deepcopy(call.model), again.double()
    inputs, wide = _copied(call.inputs), _copied(call.inputs, wide=True)
    if made.seed is not None:
        return ThreeResults(
            got, redrawn(plain, inputs, by=evaluate_storage)[0], redrawn(truth, wide)[0]
        )
    with torch.no_grad():
        return ThreeResults(got, plain(*inputs), truth(*wide))


def _wide(item: Any) -> Any:
    floats = isinstance(item, torch.Tensor) and item.is_floating_point()
    return item.double() if floats else item


def _copied(inputs: tuple[Any, ...], wide: bool = False) -> tuple[Any, ...]:
    inputs = copy.deepcopy(inputs)
    return tree_map(_wide, inputs) if wide else inputs
