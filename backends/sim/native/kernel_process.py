"""The process that runs a kernel's code for the simulator.

It runs the kernel's programs ahead and sends their commands (`host.h`); the simulator, in this process,
checks and carries them out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from backends.caged.process import Program, runner
from backends.sim.native.load import load

# What a kernel is linked with. The simulator may hold its own copy, where its compiler says so, and a
# process that is shut in can read no library.
_OF_KERNELS = ("libstdc++.so.6", "libgcc_s.so.1", "libm.so.6")


def program() -> Program:
    """What that process does: serve the simulator."""
    file = load().__file__
    assert file is not None
    return Program(f"{Path(file).resolve()}:serve_kernel", _OF_KERNELS)


@contextmanager
def kernel_process(library: Path) -> Iterator[int]:
    """The socket of a new process for one simulation, which ends with the block. Died where the
    simulation failed because that process ended."""
    with runner(program(), library, load().KernelEnded) as place:
        yield place.fileno()
