"""Building CuTe DSL: sets a source's constants and adds the host function that the compiler needs."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from backends.backend import BackendError
from backends.cutedsl import compiler
from backends.cutedsl.compiler import Kernel
from backends.cutedsl.spelling import templates
from backends.gpu.cubins.build import Language, Launches
from backends.gpu.source.launches import Call, calls, constants

FILE = "kernel.py"


def compiled(source: str, given: Launches, sizes: Mapping[str, int], arch: str) -> bytes:
    """The cubin of a source. given: its launches, sizes: those that set the source's constants."""
    kernels = kernels_of(given, sizes)
    for kernel in kernels:
        if not re.search(rf"^def {kernel.name}\(", source, re.MULTILINE):
            raise BackendError("build", f"the source has no kernel `{kernel.name}`")
    text = with_constants(source, constants(given, sizes)) + compiler.host(kernels)
    # Each compilation has its own folder: other processes compile at the same time, and the DSL
    # reads the module's file again.
    own = Path(tempfile.mkdtemp())
    module = own / FILE
    module.write_text(text, encoding="utf-8")
    return compiler.compiled(module, arch, kernels, own)


LANGUAGE = Language(
    file=FILE,
    table="cutedsl",
    missing=compiler.MISSING,
    seconds=120.0,
    memory=8 << 30,
    version=compiler.version,
    load=compiler.library,
    compile=compiled,
)


def kernels_of(given: Launches, sizes: Mapping[str, int]) -> list[Kernel]:
    """The kernels of a source, as its host function launches them."""
    types = templates().table("names.j2", "MEMORY")
    dtypes = dict(zip(given["tensors"], given["dtypes"], strict=True))
    made: dict[str, Call] = {}
    for call in calls(given, sizes):
        made.setdefault(call.name, call)
    return [
        Kernel(
            name=launch["name"],
            threads=launch["block"],
            shared=made[launch["name"]].shared if launch["name"] in made else 0,
            pointers=tuple(types[dtypes[t]] for t in launch["tensors"]),
            maps=len(launch["maps"]),
            numbers=len(launch["arguments"]) + launch["step"],
            registers=launch["registers"],
        )
        for group in given["groups"]
        for launch in group["launches"]
    ]


def with_constants(source: str, set_to: Mapping[str, int]) -> str:
    """A source in which those constants that it has are set."""
    for name, number in set_to.items():

        def line(found: re.Match, name: str = name, number: int = number) -> str:
            flag = found[1] in ("True", "False")
            return f"{name} = {bool(number) if flag else number}"

        source = re.sub(rf"^{name} = (\w+)$", line, source, flags=re.MULTILINE)
    return source
