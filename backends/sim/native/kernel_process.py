"""The process that runs a kernel's code for the simulator.

It runs the kernel's programs ahead and sends their commands (`host.h`). The simulator, in this
process, checks and executes the commands.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from backends.caged.process import Program, runner
from backends.sim.native.load import load

# The libraries of a kernel. The simulator may have its own copies, depending on its compiler, and a
# restricted process cannot read libraries.
_OF_KERNELS = ("libstdc++.so.6", "libgcc_s.so.1", "libm.so.6")


def program() -> Program:
    """The program of that process: serves the simulator."""
    file = load().__file__
    assert file is not None
    return Program(f"{Path(file).resolve()}:serve_kernel", _OF_KERNELS)


@contextmanager
def kernel_process(library: Path) -> Iterator[int]:
    """A context with the socket of a new process for one simulation. Raises Died if the simulation
    failed because that process ended."""
    with runner(program(), library, load().KernelEnded) as place:
        yield place.fileno()
