"""Disassembles the kernels of a cubin."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from backends.backend import BackendError
from backends.gpu.assembly import cubin, sass
from backends.gpu.assembly.mix import Code

TOOL = "*/backends/nvidia/bin/cuobjdump"


def programs(
    image: Path, arch: int, names: Iterable[str], disassembler: Callable[[], Path]
) -> dict[str, Code]:
    """The compiled code of a cubin's kernels by name. disassembler: returns the path of cuobjdump,
    which is used where the direct reader finds something unknown."""
    try:
        return cubin.functions(image.read_bytes(), arch)
    except cubin.Unknown:
        return {n: sass.code(image, disassembler(), n) for n in names}


@cache
def cuobjdump() -> Path:
    """The path of NVIDIA's disassembler, from a package of the lock file."""
    for folder in sys.path:
        for found in Path(folder).glob(TOOL):
            return found
    raise BackendError("build", "there is no cuobjdump; install the packages of requirements.lock")
