"""A module: a problem file of PyTorch as the kernels that compute it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from backends.backend import Backend
from backends.compiled import Kernels
from frontends.kernelbench.apart import apart
from frontends.kernelbench.solution import Solution
from ir.errors import KernelError
from ir.machine import Machine
from ir.network import Network, Outside
from ir.partition.partition import partition
from ir.spec import Spec
from search.command.packages import require

SECONDS = 300.0  # that reading a file may take


@dataclass(frozen=True, slots=True)
class Sized:
    """A task at one of its shapes. spec, aliases: its equations, at literal sizes.  outside: its
    calls that are left to PyTorch."""

    shape: Mapping[str, int]
    weight: float
    spec: Spec
    aliases: Mapping[str, str]
    outside: tuple[Outside, ...] = ()


@dataclass(frozen=True, slots=True)
class Module:
    """A problem file that was read. spec, aliases: its equations, at literal sizes.  solution: what
    its `ModelNew` is made of, None where nobody asked.  sized: a task at each of its shapes, the
    heaviest first; nothing for a problem.  outside, left: its calls that are left to PyTorch, and
    the names of their operators."""

    file: Path
    spec: Spec
    aliases: Mapping[str, str]
    solution: Solution | None = None
    sized: tuple[Sized, ...] = ()
    outside: tuple[Outside, ...] = ()
    left: tuple[str, ...] = ()

    @property
    def shape(self) -> Mapping[str, int] | None:
        """The heaviest shape of a task; None for a problem."""
        return self.sized[0].shape if self.sized else None

    def networks(self, machine: Machine, backend: Backend) -> tuple[Network, ...]:
        """Its steps on a machine, at each shape; KernelError where they cannot be lowered."""
        emit = Kernels(machine, backend).emit
        texts = self.sized or (self,)
        try:
            return tuple(partition(one.spec, {}, one.aliases, emit, one.outside) for one in texts)
        except KernelError as error:
            raise _within(self.file, error) from None


def read(file: Path, reduced: bool, solution: bool, allow_torch: tuple[str, ...] = ()) -> Module:
    """A problem file, read once, in a process of its own: it is code of others.

    reduced: at sizes that can be simulated.  solution: `ModelNew` is to be written.  allow_torch:
    operators that are left to PyTorch. Raises KernelError where the file cannot be read or
    exported, has no `ModelNew`, or calls none of such an operator.
    """
    require("torch", "it reads modules", "install it", "--problem")
    try:
        spec, aliases, said, calls = apart(
            _parts, str(file), reduced, solution, allow_torch, seconds=SECONDS, devices=False
        )
        return Module(file, spec, aliases, said, outside=calls, left=allow_torch)
    except KernelError as error:
        raise _within(file, error) from None


def read_task(file: Path, allow_torch: tuple[str, ...] = ()) -> Module:
    """A task's file, read apart too; KernelError as `read` raises it."""
    require("torch", "it reads modules", "install it", "--task")
    try:
        sized = apart(_task, str(file), allow_torch, seconds=SECONDS, devices=False)
    except KernelError as error:
        raise _within(file, error) from None
    first = sized[0]
    return Module(file, first.spec, first.aliases, None, sized, first.outside, allow_torch)


def _task(file: str, allow_torch: tuple[str, ...]) -> tuple[Sized, ...]:
    """A task's reference as equations, at each shape. Runs apart."""
    from frontends.kernelbench.task import Task
    from frontends.pytorch.foreign import outside, require_called

    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        task = Task.read(file, allow_torch)
        opened = task.opened()
        found, imports = [], []
        for shape, weight in opened.shapes:
            made = opened.at(shape).imported(task.name)
            imports.append(made)
            found.append(Sized(dict(shape), weight, made.spec, dict(made.aliases), outside(made)))
        require_called(imports, allow_torch)
    return tuple(found)


def _within(file: Path, error: KernelError) -> KernelError:
    inside = error.where and error.where != str(file)
    return error.within(f"{file}: {error.where}" if inside else str(file))


def _parts(
    file: str, reduced: bool, wanted: bool, allow_torch: tuple[str, ...]
) -> tuple[Spec, dict[str, str], Solution | None, tuple[Outside, ...]]:
    """A file's model as equations, with what a solution needs, and the calls that are left to
    PyTorch. Runs apart."""
    from frontends.kernelbench.model_new import solution
    from frontends.kernelbench.problem import Problem
    from frontends.kernelbench.scaled import scaled
    from frontends.pytorch.foreign import outside, require_called
    from frontends.pytorch.module import imported

    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        problem = Problem.read(file)
        problem = scaled(problem) if reduced else problem
        made = problem.made(fake=not reduced)
        found = imported(made.model, made.inputs, name=problem.name, allow_torch=allow_torch)
        require_called([found], allow_torch)
        said = solution(problem, found) if wanted else None
    return found.spec, dict(found.aliases), said, outside(found)
