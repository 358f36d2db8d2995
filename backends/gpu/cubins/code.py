"""The compiled programs of a cubin."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from backends.gpu.assembly import cubin, sass
from backends.gpu.assembly.mix import Code


def programs(
    image: Path, arch: int, names: Iterable[str], disassembler: Callable[[], Path]
) -> dict[str, Code]:
    """The compiled programs of a cubin by name. names: those of its kernels. disassembler: gives
    cuobjdump, which is asked where the direct reader does not know something."""
    try:
        return cubin.functions(image.read_bytes(), arch)
    except cubin.Unknown:
        return {n: sass.code(image, disassembler(), n) for n in names}
