"""A compiled network as a program."""

from __future__ import annotations

from backends.compiled import Compiled
from backends.program.launcher import launcher, place
from backends.program.program import NOTHING, Program, Tensors


def program(run: Compiled, fixed: Tensors = NOTHING, reuse: bool = False) -> Program:
    """A network whose kernels are built, as a call on torch tensors; see `Program`."""
    launchers = {
        spec: launcher(run.backend, kernel.built, kernel.nest, run.machine)
        for spec, kernel in run.kernels.items()
    }
    return Program(run.network, launchers, place(run.backend, run.machine), fixed, reuse)
