"""Building: a source and its launches' metadata, a cubin for each set of constants.

kernel.cu      the source
launches.json  what is launched with what; see launches.py
<digest>.cubin the code for one set of constants, which depend on sizes
"""

from __future__ import annotations

import importlib.util
import json
import os
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from backends.backend import BackendError, Built
from backends.cuda import nvrtc
from backends.gpu.assembly.mix import Code
from backends.gpu.child import in_child, limit_memory
from backends.gpu.cubins import code
from backends.gpu.model.builds import CompiledLaunch, check_limits, figures
from backends.gpu.source.launches import calls, constants, metadata
from backends.gpu.threads.thread import ThreadProgram
from ir.digest import text_digest
from ir.machine import Machine
from machines.gpu.facts import facts

FILE, LAUNCHES = "kernel.cu", "launches.json"
HERE = Path(__file__).parent
HEADERS = {  # by the names that sources include
    f.name: f
    for f in (
        *(HERE / "kernel.h", HERE / "ptx.h"),
        *(HERE.parent / "gpu" / "source" / n for n in ("eight.h", "prelude.h")),
    )
}
SECONDS = 60.0  # limit for one compilation
MEMORY = 4 << 30  # bytes that it may take beside what the process has
# Divisions and roots within two units of the last place; no other fast arithmetic.
OPTIONS = (
    *("--std=c++20", "--device-as-default-execution-space", "--prec-div=false"),
    *("--prec-sqrt=false", "--extra-device-vectorization", "--restrict"),
)


def build(
    source: str, program: ThreadProgram, sizes: Mapping[str, int], machine: Machine, folder: Path
) -> Built:
    """Writes a source and what it is launched with, and compiles it for some sizes.

    BackendError("build") where the compiler refuses, hangs or dies, where the source lacks a launch,
    and where no device would run the result.
    """
    file = folder / FILE
    file.write_text(source, encoding="utf-8")
    given = metadata(program)
    (folder / LAUNCHES).write_text(json.dumps(given, indent=1), encoding="utf-8")
    began = time.perf_counter()
    found = programs(file, machine, sizes)
    seconds = time.perf_counter() - began
    table, done = facts(machine), {}
    stages = {one.name: max((t.stages for t in one.shared), default=1) for one in program.launches}
    for call in calls(given, sizes):
        if call.name not in found:
            raise BackendError("build", f"the source has no kernel `{call.name}`")
        done.setdefault(
            call.name,
            CompiledLaunch(
                name=call.name,
                programs=call.grid,
                warps=call.block // machine.warp,
                stages=stages[call.name],
                shared=call.shared,
                seconds=seconds / len(found),
                code=found[call.name],
            ),
        )
    for one in done.values():
        check_limits(one, table)
    return Built(file, figures(list(done.values()), table))


def programs(file: Path, machine: Machine, sizes: Mapping[str, int]) -> dict[str, Code]:
    """The compiled programs of a source by name."""
    arch = int(str(machine.details["cuda"]["arch"]).rstrip("af"))
    names = [one["name"] for g in launches(file)["groups"] for one in g["launches"]]
    return code.programs(compiled(file, machine, sizes), arch, names, cuobjdump)


def launches(file: Path) -> dict[str, Any]:
    """What a built source is launched with."""
    return json.loads((file.parent / LAUNCHES).read_text(encoding="utf-8"))


def compiled(file: Path, machine: Machine, sizes: Mapping[str, int]) -> Path:
    """The cubin of a built source for the constants at some sizes, made in a child where there is
    none yet."""
    set_to = constants(launches(file), sizes)
    options = [
        f"--gpu-architecture=sm_{machine.details['cuda']['arch']}",
        *OPTIONS,
        *(f"-D{name}={number}" for name, number in set_to.items()),
    ]
    source = file.read_text(encoding="utf-8")
    headers = {n: file.read_text(encoding="utf-8") for n, file in HEADERS.items()}
    parts = (nvrtc.version(), *headers.values(), source, *options)
    image = file.parent / f"{text_digest(chr(0).join(parts))}.cubin"
    if not image.exists():
        nvrtc.library()  # loaded here, so that no child loads it again

        def work() -> bytes:
            limit_memory(MEMORY)
            return nvrtc.compiled(source, file.name, headers, options)

        made = in_child(work, SECONDS, "build", file.parent)
        part = image.with_suffix(f".{os.getpid()}")
        part.write_bytes(made)
        part.replace(image)
    return image


def compile_source(source: Path, machine: Machine, to: Path) -> None:
    """The cubin of a source alone, for the sizes that it is tuned for."""
    options = (f"--gpu-architecture=sm_{machine.details['cuda']['arch']}", *OPTIONS)
    headers = {n: file.read_text(encoding="utf-8") for n, file in HEADERS.items()}
    text = source.read_text(encoding="utf-8")
    to.write_bytes(nvrtc.compiled(text, source.name, headers, options))


@cache
def cuobjdump() -> Path:
    """NVIDIA's disassembler, which Triton's package has."""
    spec = importlib.util.find_spec("triton")
    if spec is None or spec.origin is None:
        raise BackendError("build", "there is no cuobjdump; install triton")
    return Path(spec.origin).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
