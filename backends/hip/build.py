"""Builds a source: its launch metadata, and a code object for each set of constants.

kernel.hip      the source
launches.json   the arguments of each launch; see launches.py of backends/gpu/source
<digest>.s      the assembly for one set of constants, which depend on sizes
<digest>.hsaco  its code object
"""

from __future__ import annotations

import json
import os
import re
import resource
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from backends.backend import BackendError, Built
from backends.gpu.assembly import amdgcn
from backends.gpu.assembly.mix import Code
from backends.gpu.child import in_child
from backends.gpu.launched.builds import compiled_launches
from backends.gpu.model.builds import CompiledLaunch, check_limits, figures
from backends.gpu.source.launches import calls, constants, metadata, text, value
from backends.gpu.source.layouts import BYTES
from backends.gpu.threads.thread import ThreadProgram
from backends.hip import clang
from ir.digest import text_digest
from ir.machine import Machine
from machines.gpu.facts import facts

FILE, LAUNCHES = "kernel.hip", "launches.json"
SECONDS = 60.0  # seconds; limit for one compilation
MEMORY = 8 << 30  # bytes of the compiler's address space
BUFFER = 2**31  # bytes of a tensor that 32-bit buffer offsets cannot address
# Of each kernel, in addition to `figures`: registers of each file, and spills of them.
COUNTS = {
    "vector_registers": "vgpr_count",
    "accumulation_registers": "agpr_count",
    "scalar_registers": "sgpr_count",
    "vector_spills": "vgpr_spill_count",
    "scalar_spills": "sgpr_spill_count",
}
# Instructions on two elements: arithmetic on pairs of f32 or of halves, and conversions to halves.
_PACKED = re.compile(r"^\tv_(?:pk_(?:add|mul|fma|max|min)_f|cvt_(?:\w+_)?pk)\w+", re.MULTILINE)
_METADATA = re.compile(
    r"\n  - (?=\.agpr_count)(.*?)(?=\n  - \.agpr_count|\namdhsa\.target)", re.DOTALL
)


def written(source: str, program: ThreadProgram, folder: Path) -> Path:
    """Writes the file of a source, and its launch metadata next to it."""
    file = folder / FILE
    file.write_text(source, encoding="utf-8")
    given = metadata(program) | {"bytes": tensor_bytes(program)}
    (folder / LAUNCHES).write_text(json.dumps(given, indent=1), encoding="utf-8")
    return file


def build(
    source: str,
    program: ThreadProgram,
    stages: Mapping[str, int],
    sizes: Mapping[str, int],
    machine: Machine,
    folder: Path,
) -> Built:
    """Writes a source and its launch metadata, and compiles it for some sizes.

    stages: the largest number of stages in each launch's loops. Raises BackendError("build") if the
    compiler fails, hangs or dies, if the source lacks a launch, or if no device could run the
    result.
    """
    file = written(source, program, folder)
    given = launches(file)
    began = time.perf_counter()
    texts = kernels(compiled(file, machine, sizes).with_suffix(".s").read_text(encoding="utf-8"))
    seconds = time.perf_counter() - began
    made = tuple(calls(given, sizes))
    found = {call.name: code(texts[call.name]) for call in made if call.name in texts}
    table = facts(machine)
    done = compiled_launches(made, found, stages, machine.warp, seconds)
    limits = {one.name: one.registers for one in program.launches if one.registers}
    for one in done:
        check_limits(one, table)
        _require_kept(one, limits.get(one.name, 0))
    own = {
        f"{n}.{fact}": float(_number(texts[n], word))
        for n in found
        for fact, word in COUNTS.items()
    }
    own |= {f"{n}.packed": float(packed(texts[n])) for n in found}
    return Built(file, figures(done, table) | own)


def _require_kept(one: CompiledLaunch, limit: int) -> None:
    """Raises BackendError if a launch uses more registers than its schedule allows."""
    if limit and one.code.registers > limit:
        raise BackendError(
            "build", f"{one.name} has {one.code.registers} registers; its schedule allows {limit}"
        )


def tensor_bytes(program: ThreadProgram) -> list[str]:
    """The bytes of each tensor, as texts over sizes."""
    return [
        " * ".join((str(BYTES[p.dtype]), *(f"({text(e)})" for e in p.shape)))
        for p in program.tensors
    ]


def far(bytes_of: Iterable[str], sizes: Mapping[str, int]) -> bool:
    """Whether a tensor is too large for buffer offsets."""
    return any(value(each, sizes) >= BUFFER for each in bytes_of)


def kernels(assembly: str) -> dict[str, str]:
    """The assembly of each kernel with its metadata, by name."""
    found = {}
    for block in _METADATA.findall(assembly):
        name = re.search(r"^    \.name: +(\S+)", block, re.MULTILINE)
        if name and (
            body := re.search(rf"^{name[1]}:.*?^\.Lfunc_end", assembly, re.MULTILINE | re.DOTALL)
        ):
            found[name[1]] = f"{body[0]}\n  {block}\n"
    return found


def packed(assembly: str) -> int:
    """The number of instructions of a kernel that process two elements."""
    return len(_PACKED.findall(assembly))


def code(assembly: str) -> Code:
    """A kernel of `kernels`."""
    return amdgcn.parsed(assembly)


def _number(assembly: str, name: str) -> int:
    found = re.search(rf"^\s+\.{name}:\s*(\d+)", assembly, re.MULTILINE)
    return int(found[1]) if found else 0


def launches(file: Path) -> dict[str, Any]:
    """The launch metadata of a built source."""
    return json.loads((file.parent / LAUNCHES).read_text(encoding="utf-8"))


def compiled(file: Path, machine: Machine, sizes: Mapping[str, int]) -> Path:
    """The code object of a built source for the constants at some sizes, compiled in a child
    process if it does not exist. Its assembly is next to it."""
    arch = machine.details["hip"]["arch"]
    given = launches(file)
    defines = [f"-D{n}={v}" for n, v in constants(given, sizes).items()]
    defines += ["-DFAR=1"] * far(given["bytes"], sizes)
    headers = [h for folder in (clang.DEVICE, *clang.INCLUDE) for h in sorted(folder.rglob("*.h"))]
    texts = [h.read_text(encoding="utf-8") for h in headers if clang.NATIVE not in h.parents]
    parts = (clang.version(), arch, *texts, file.read_text(encoding="utf-8"), *defines)
    image = file.parent / f"{text_digest(chr(0).join(parts))}.hsaco"
    if not image.exists():

        def work() -> None:
            _, most = resource.getrlimit(resource.RLIMIT_AS)
            limit = MEMORY if most == resource.RLIM_INFINITY else min(MEMORY, most)
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            part = image.with_suffix(f".{os.getpid()}.s")
            clang.assembly(file, arch, defines, part)
            made = part.with_suffix(".hsaco")
            clang.code_object(part, arch, made)
            part.replace(image.with_suffix(".s"))
            made.replace(image)

        in_child(work, SECONDS, "build", file.parent)
    return image
