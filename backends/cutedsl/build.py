"""Building: a source and its launches' metadata, a cubin for each set of constants.

kernel.py      the source
launches.json  what is launched with what; see backends/gpu/source/launches.py
<digest>.cubin the code for one set of constants, which depend on sizes
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import tempfile
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from backends.backend import BackendError, Built
from backends.cutedsl import compiler
from backends.cutedsl.compiler import Kernel
from backends.cutedsl.spelling import templates
from backends.gpu.assembly.mix import Code
from backends.gpu.child import in_child, limit_memory
from backends.gpu.cubins.code import programs
from backends.gpu.model.builds import CompiledLaunch, check_limits, figures
from backends.gpu.source.launches import Call, calls, constants, metadata
from backends.gpu.threads.thread import ThreadProgram
from ir.digest import text_digest
from ir.machine import Machine
from machines.gpu.facts import facts

FILE, LAUNCHES = "kernel.py", "launches.json"
SUPPORT = Path(__file__).parent / "kernel"
SECONDS = 120.0  # limit for one compilation
MEMORY = 8 << 30  # bytes that it may take beside what the process has


def build(
    source: str, program: ThreadProgram, sizes: Mapping[str, int], machine: Machine, folder: Path
) -> Built:
    """Writes a source and what it is launched with, and compiles it for some sizes.

    BackendError("build") where the compiler refuses, hangs or dies, where the source lacks a launch,
    and where no device would run the result.
    """
    file = folder / FILE
    file.write_text(source, encoding="utf-8")
    given = metadata(program) | {"dtypes": {p.name: p.dtype for p in program.tensors}}
    (folder / LAUNCHES).write_text(json.dumps(given, indent=1), encoding="utf-8")
    began = time.perf_counter()
    image = compiled(file, machine, sizes)
    seconds = time.perf_counter() - began
    arch = int(machine.details["cutedsl"]["arch"][:-1])
    code = programs(image, arch, (one.name for one in program.launches), cuobjdump)
    stages = {one.name: max((t.stages for t in one.shared), default=1) for one in program.launches}
    table, done = facts(machine), {}
    for call in calls(given, sizes):
        if call.name not in done:
            done[call.name] = _launch(call, code, machine, stages, seconds / len(code))
    for one in done.values():
        check_limits(one, table)
    return Built(file, figures(list(done.values()), table))


def _launch(
    call: Call,
    code: Mapping[str, Code],
    machine: Machine,
    stages: Mapping[str, int],
    seconds: float,
) -> CompiledLaunch:
    return CompiledLaunch(
        name=call.name,
        programs=call.grid,
        warps=call.block // machine.warp,
        stages=stages[call.name],
        shared=call.shared,
        seconds=seconds,
        code=code[call.name],
    )


def launches(file: Path) -> dict[str, Any]:
    """What a built source is launched with."""
    return json.loads((file.parent / LAUNCHES).read_text(encoding="utf-8"))


def compiled(file: Path, machine: Machine, sizes: Mapping[str, int]) -> Path:
    """The cubin of a built source for the constants at some sizes, made in a child where there is
    none yet."""
    given = launches(file)
    arch = f"sm_{machine.details['cutedsl']['arch']}"
    kernels = kernels_of(given, sizes)
    source = file.read_text(encoding="utf-8")
    text = with_constants(source, constants(given, sizes)) + compiler.host(kernels)
    parts = (compiler.version(), arch, support(), text)
    image = file.parent / f"{text_digest(chr(0).join(parts))}.cubin"
    if not image.exists():
        compiler.library(arch)  # loaded here, so that no child loads it again
        for kernel in kernels:
            if not re.search(rf"^def {kernel.name}\(", source, re.MULTILINE):
                raise BackendError("build", f"the source has no kernel `{kernel.name}`")

        def work() -> bytes:
            limit_memory(MEMORY)
            own = Path(tempfile.gettempdir())
            module = own / FILE
            module.write_text(text, encoding="utf-8")
            return compiler.compiled(module, arch, kernels, own)

        made = in_child(work, SECONDS, "build", file.parent)
        part = image.with_suffix(f".{os.getpid()}")
        part.write_bytes(made)
        part.replace(image)
    return image


def kernels_of(given: Mapping[str, Any], sizes: Mapping[str, int]) -> list[Kernel]:
    """The kernels of a source as its host function calls them."""
    types = templates().table("names.j2", "MEMORY")
    made: dict[str, Call] = {}
    for call in calls(given, sizes):
        made.setdefault(call.name, call)
    found = []
    for launch in (one for group in given["groups"] for one in group["launches"]):
        call = made.get(launch["name"])
        found.append(
            Kernel(
                name=launch["name"],
                threads=launch["block"],
                shared=call.shared if call else 0,
                pointers=tuple(types[given["dtypes"][t]] for t in launch["tensors"]),
                maps=len(launch["maps"]),
                numbers=len(launch["arguments"]) + launch["step"],
            )
        )
    return found


def with_constants(source: str, set_to: Mapping[str, int]) -> str:
    """A source with its constants set, of those that it has."""
    for name, number in set_to.items():

        def line(found: re.Match, name: str = name, number: int = number) -> str:
            flag = found[1] in ("True", "False")
            return f"{name} = {bool(number) if flag else number}"

        source = re.sub(rf"^{name} = (\w+)$", line, source, flags=re.MULTILINE)
    return source


@cache
def support() -> str:
    """The texts of what kernels call."""
    return "".join(f.read_text(encoding="utf-8") for f in sorted(SUPPORT.glob("*.py")))


@cache
def cuobjdump() -> Path:
    """NVIDIA's disassembler, which Triton's package has."""
    spec = importlib.util.find_spec("triton")
    if spec is None or spec.origin is None:
        raise BackendError("build", "there is no cuobjdump; install triton")
    return Path(spec.origin).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
