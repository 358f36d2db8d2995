"""A module: a problem file of PyTorch as the kernels that compute it."""

from __future__ import annotations

import os
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from backends.backend import Backend
from backends.compiled import Kernels
from ir.errors import KernelError
from ir.machine import Machine
from ir.partition import partition
from ir.spec import Spec
from ir.workload import Workload

SECONDS = 300.0  # that reading a file may take


def workloads(
    file: Path, reduced: bool, machine: Machine, backend: Backend
) -> tuple[Workload, ...]:
    """The kernels of a problem file for a machine, each once, at literal sizes.

    reduced: at sizes that can be simulated. The file is code of others and runs in a process of its
    own. Raises KernelError where it cannot be read, exported or lowered.
    """
    try:
        from frontends.kernelbench.apart import apart
    except ImportError as error:
        raise KernelError(f"PyTorch modules need torch: {error}", where="--problem") from error
    try:
        spec, aliases = apart(_equations, str(file), reduced, seconds=SECONDS)
        network = partition(spec, {}, aliases, Kernels(machine, backend).emit)
    except KernelError as error:
        inside = error.where and error.where != str(file)
        raise error.within(f"{file}: {error.where}" if inside else str(file)) from None
    return tuple(Workload(one, {}, ({},)) for one in network.kernels())


def _equations(file: str, reduced: bool) -> tuple[Spec, dict[str, str]]:
    """The equations of a file's model. Runs apart."""
    from frontends.kernelbench.problem import Problem
    from frontends.kernelbench.scaled import scaled
    from frontends.pytorch.module import imported

    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        problem = Problem.read(file)
        problem = scaled(problem) if reduced else problem
        made = problem.made(fake=not reduced)
        found = imported(made.model, made.inputs, name=problem.name)
    return found.spec, dict(found.aliases)
