"""A task: compares the winners of all its kernels with its reference, and runs its tests."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from dataclasses import dataclass
from functools import partial
from io import StringIO
from pathlib import Path

from backends.backend import Built
from backends.compiled import Compiled, Kernel
from backends.registry import backend_for
from backends.served import Served
from frontends.kernelbench.apart import apart
from ir.errors import KernelError
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.workload import Sizes
from search.cli.modules import Module, ShapedNetwork
from search.cli.promote import winner_source
from search.cli.session import Ended
from search.core import quantity
from search.core.lowered import lowered
from search.evaluator.clean import beside

SECONDS = 600.0  # seconds for all comparisons and tests, including builds
GIGABYTES = 16.0  # memory limit, unless a device's driver reserves more addresses
Results = Sequence[tuple[str, str]]  # of comparisons and tests: name, and fault (empty if none)


@dataclass(frozen=True, slots=True)
class WinnerTexts:
    """The texts of the best candidate of a kernel, and its backend."""

    backend: str
    variant: str
    schedule: str
    source: str
    edited: bool  # whether the source is by others


@dataclass(frozen=True, slots=True)
class TaskCheck:
    """The input of the separate process."""

    file: str
    name: str
    shaped: tuple[ShapedNetwork, ...]  # the network at each shape, the heaviest first
    machines: Mapping[str, Machine]  # the target by backend
    winners: Mapping[str, WinnerTexts]
    left: tuple[str, ...] = ()  # operators that are left to PyTorch


def task_results(
    module: Module, shaped: tuple[ShapedNetwork, ...], ended: Sequence[Ended]
) -> Results:
    """The results of a task on a target. An error that prevents the run is one result.

    shaped: its network at its tuned shapes. ended: the searches of the kernels, each with a correct
    candidate.
    """
    problem = ended[0].problem
    winners = {}
    for one in ended:
        best = one.outcome.best
        assert best is not None, "a kernel without a correct candidate is not tried"
        task_text = winner_source(one.problem, one.outcome)
        winners[one.outcome.settings.kernel] = WinnerTexts(
            best.backend, best.variant, best.schedule, task_text, best.source is not None
        )
    trial = TaskCheck(
        str(module.file),
        module.spec.name,
        shaped,
        {name: one.machine for name, one in problem.served.items()},
        winners,
        module.left,
    )
    can = [one.backend.available(one.machine) for one in problem.served.values()]
    # Backends report whether the limit is possible.
    limited = all(each.get("memory", GIGABYTES) is not None for each in can)
    try:
        return apart(_results, trial, seconds=SECONDS, gigabytes=GIGABYTES if limited else None)
    except KernelError as error:
        return [("the task", str(error))]


def task_text(
    module: Module, shaped: tuple[ShapedNetwork, ...], target: str, found: Results
) -> str:
    """Lines for a person: the number of correct results, and each fault."""
    faults = [f"\n  {one}: {fault}" for one, fault in found if fault]
    sizes = " | ".join(quantity.shape(one.shape) for one in shaped if one.shape)
    at = f" at {sizes}" if sizes else ""
    others = len(module.sized) - len(shaped)
    shapes = f"{others} other shape{'s' * (others != 1)}"
    left = f"; {shapes} not run, which differ in more than sizes" if others > 0 else ""
    right = f"{len(found) - len(faults)} of {len(found)} comparisons and tests hold"
    return f"{module.spec.name} on {target}{at}: {right}{left}" + "".join(faults)


def _results(trial: TaskCheck) -> Results:
    from frontends.kernelbench.task import Task

    quiet, found = StringIO(), []  # stdout belongs to the command
    with (
        tempfile.TemporaryDirectory(prefix="task-") as folder,
        redirect_stdout(quiet),
        _beside(trial),
    ):
        opened = Task.read(trial.file, trial.left).opened()
        built = _built(trial, Path(folder))
        for number, one in enumerate(trial.shaped):
            run = _compiled(trial, one, built)
            at = f" at {quantity.shape(one.shape)}" if number else ""
            results = opened.at(one.shape).results(trial.name, one.spec, run)
            found += [(f"{name}{at}", fault) for name, fault in results]
    return found


def _beside(trial: TaskCheck) -> AbstractContextManager[None]:
    """A clean process for winners whose source is by others."""
    for winner in trial.winners.values():
        machine, name = trial.machines[winner.backend], winner.backend
        if winner.edited and backend_for(machine, name).available(machine).get("apart"):
            return beside(machine, partial(backend_for, machine, name))
    return nullcontext()


def _built(trial: TaskCheck, folder: Path) -> dict[str, Built]:
    """The builds of the winners, each for the heaviest shape."""
    built = {}
    for name, winner in trial.winners.items():
        machine = trial.machines[winner.backend]
        nest = _nest(trial, winner, trial.shaped[0].sizes[name])
        place = folder / name
        place.mkdir()
        backend = backend_for(machine, winner.backend)
        built[name] = backend.build(winner.source, nest, machine, place)
    return built


def _nest(trial: TaskCheck, winner: WinnerTexts, sizes: Sizes) -> LoopNest:
    return lowered(winner.variant, winner.schedule, trial.machines[winner.backend], sizes)


def _compiled(trial: TaskCheck, one: ShapedNetwork, built: Mapping[str, Built]) -> Compiled:
    """The network at a shape, with the winners as kernels."""
    kernels, first = {}, next(iter(trial.winners.values())).backend
    for name, spec in zip(one.sizes, one.network.kernels(), strict=True):
        winner, sizes = trial.winners[name], one.sizes[name]
        nest = _nest(trial, winner, sizes)
        backend = backend_for(trial.machines[winner.backend], winner.backend)
        by = Served(backend, trial.machines[winner.backend])
        kernels[spec] = Kernel(spec, nest, winner.source, built[name], sizes, by)
    machine = trial.machines[first]
    return Compiled(one.network, machine, backend_for(machine, first), kernels)
