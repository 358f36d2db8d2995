"""Compiling: each launch of a source for a target, with triton's own front end and no device.

The compiler runs in a child. There, triton's driver is one that only names the target, and every
launch stops after compilation: types, constants, divisibility and options are those that triton
itself derives from the arguments of a real launch.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
import triton
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import make_backend
from triton.runtime import driver
from triton.runtime.jit import JITFunction, mangle_type

from backends.backend import BackendError, Built
from backends.triton.build import amdgcn, cubin, sass
from backends.triton.build.child import in_child
from backends.triton.build.mix import Code
from backends.triton.build.module import launcher
from backends.triton.occupancy import programs_per_unit
from backends.triton.signature import parameters
from backends.triton.tensors import unplaced
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.sizes import bind

FILE = "kernel.py"
CACHE = "triton"  # the folder of triton's own cache, which running on a device finds again
SECONDS = 60.0  # that all launches of one source may take
NAME = "triton"  # of the target file's table


@dataclass(frozen=True, slots=True)
class Compiled:
    """One launch, compiled. shared: bytes of a program.  seconds: of compiling."""

    name: str
    programs: int
    warps: int
    stages: int
    shared: int
    seconds: float
    code: Code


def build(source: str, nest: LoopNest, machine: Machine, folder: Path) -> Built:
    """Writes a source under `folder` and compiles its launches for the nest's sizes.

    Raises BackendError("build") for what the compiler refuses, what makes it hang or die, and
    what no device would run.
    """
    file = folder / FILE
    file.write_text(source, encoding="utf-8")
    table = machine.details[NAME]
    warm(machine)
    done = in_child(lambda: compiled(file, nest, table), SECONDS, "build", folder)
    _check_launches(done, nest)
    for one in done:
        _check_limits(one, table)
    return Built(file, figures(done, table))


def compiled(file: Path, nest: LoopNest, table: Mapping[str, Any]) -> list[Compiled]:
    """All launches of a source file in order; for a child, whose triton is no good afterwards."""
    target = GPUTarget(table["backend"], table["arch"], table["wave"])
    driver.set_active(_Nowhere(target))
    knobs.cache.dir = str(file.parent / CACHE)
    launch = launcher(file, "build")
    sizes = bind(nest.spec, dict(nest.sizes))
    with _recorded() as kernels:
        launch(*(unplaced(p, sizes) for p in parameters(nest)))
    return _disassembled(_each_once(kernels, nest), file.parent / CACHE, table["arch"])


def _each_once(kernels: list[_Kernel], nest: LoopNest) -> list[_Kernel]:
    """The launches, those of a recurrence without the repetitions of later steps."""
    steps = {launch.name for launch in nest.launches if launch.repeat}
    kept: dict[object, _Kernel] = {}
    for n, one in enumerate(kernels):
        facts = one.kernel.metadata
        kept.setdefault((facts.name, facts.hash) if facts.name in steps else n, one)
    return list(kept.values())


def warm(machine: Machine) -> None:
    """Does once in this process what every child would do again: about a second of hashing, and
    imports that triton puts off until it meets a tensor."""
    table = machine.details[NAME]
    _warm(table["backend"], table["arch"], table["wave"])


@cache
def _warm(backend: str, arch: int | str, wave: int) -> None:
    mangle_type(torch.empty(0))
    make_backend(GPUTarget(backend, arch, wave)).hash()
    from triton.runtime import cache as triton_cache

    key = getattr(triton_cache, "triton_key", None)
    if key:
        key()


class _Nowhere:
    """A driver without a device: it says what to compile for."""

    def __init__(self, target: GPUTarget):
        self.target = target

    def get_current_target(self) -> GPUTarget:
        return self.target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int = 0) -> int:
        return 0


@dataclass(slots=True)
class _Kernel:
    """A compiled launch as triton has it. grid: programs along each axis."""

    grid: tuple[int, ...]
    kernel: Any
    seconds: float


@contextmanager
def _recorded() -> Iterator[list[_Kernel]]:
    """Within it launches are compiled, not started; equal ones once. What they gave is listed."""
    kept: list[_Kernel] = []
    run = JITFunction.run

    def record(self: JITFunction, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        began = time.perf_counter()
        kernel = run(self, *args, grid=grid, warmup=True, **options)
        seconds = time.perf_counter() - began
        bound = self.signature.bind_partial(
            *args, **{k: v for k, v in options.items() if k in self.signature.parameters}
        )
        kept.append(_Kernel(_grid(grid, bound.arguments), kernel, seconds))
        return kernel

    JITFunction.run = record
    try:
        yield kept
    finally:
        JITFunction.run = run


def _grid(grid: Any, arguments: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(grid(arguments) if callable(grid) else grid)


def _disassembled(kernels: list[_Kernel], folder: Path, arch: int | str) -> list[Compiled]:
    """The launches with their code."""
    codes: dict[str, Code] = {}
    for one in kernels:
        key = one.kernel.metadata.hash
        if key not in codes:
            codes[key] = _code(one.kernel.asm, folder / f"{key}.cubin", arch)
    return [_compiled(one, codes[one.kernel.metadata.hash]) for one in kernels]


def _code(asm: Mapping[str, Any], file: Path, arch: int | str) -> Code:
    """The program that a compiler left; `file` is written where a disassembler has to look."""
    if "amdgcn" in asm:
        return amdgcn.parsed(asm["amdgcn"])
    try:
        return cubin.parsed(asm["cubin"], int(arch))
    except cubin.Unknown:
        file.write_bytes(asm["cubin"])
        return sass.code(file)


def _compiled(one: _Kernel, code: Code) -> Compiled:
    facts = one.kernel.metadata
    programs = 1
    for extent in one.grid:
        programs *= extent
    return Compiled(
        name=facts.name,
        programs=programs,
        warps=facts.num_warps,
        stages=facts.num_stages,
        shared=facts.shared,
        seconds=one.seconds,
        code=code,
    )


def _check_launches(done: list[Compiled], nest: LoopNest) -> None:
    """Whether the source launches what the nest says, where it is known."""
    if not done:
        raise BackendError("build", "`launch` launches no kernel")
    names = [launch.name for launch in nest.launches]
    if len(done) != len(names):
        got = ", ".join(one.name for one in done)
        raise BackendError("build", f"`launch` launches {got}; expected {', '.join(names)}")


def _check_limits(one: Compiled, table: Mapping[str, Any]) -> None:
    """What the compiler lets pass and a device refuses."""
    most, lanes = table["shared_bytes_per_program"], one.warps * table["wave"]
    if one.shared > most:
        raise BackendError(
            "build", f"{one.name} needs {one.shared} bytes of shared memory; there are {most}"
        )
    if lanes > table["threads_per_program"]:
        raise BackendError(
            "build",
            f"{one.name} has {one.warps} warps, {lanes} threads; "
            f"a program may have {table['threads_per_program']}",
        )
    if one.code.registers > table["registers_per_lane"]:
        raise BackendError(
            "build",
            f"{one.name} needs {one.code.registers} registers; "
            f"a thread may have {table['registers_per_lane']}",
        )
    if not programs_per_unit(table, one.code.registers, one.shared, one.warps).programs:
        raise BackendError(
            "build",
            f"{one.name} fits no unit: {one.code.registers} registers in {one.warps} warps, "
            f"{one.shared} bytes of shared memory",
        )


def figures(done: list[Compiled], table: Mapping[str, Any]) -> dict[str, float]:
    """Static facts by name: of each launch as `<launch>.<fact>`, and over all of them."""
    found: dict[str, float] = {}
    for one in done:
        held = programs_per_unit(table, one.code.registers, one.shared, one.warps)
        facts = {
            "registers": one.code.registers,
            "spills": one.code.spills,
            "shared_bytes": one.shared,
            "occupancy": held.share,
            "programs": held.programs,
            "warps": one.warps,
            "stages": one.stages,
            "grid": one.programs,
            "instructions": len(one.code.classes),
        }
        facts |= {f"mix.{name}": n for name, n in one.code.mix().items()}
        facts |= {f"loop.{name}": n for name, n in one.code.loop_mix().items()}
        found |= {f"{one.name}.{name}": float(n) for name, n in facts.items()}
    for name in ("registers", "spills", "shared_bytes"):
        found[name] = max(found[f"{one.name}.{name}"] for one in done)
    found["occupancy"] = min(found[f"{one.name}.occupancy"] for one in done)
    found["compile_seconds"] = sum(one.seconds for one in done)
    return found


def version() -> str:
    """The compiler's name and version."""
    return f"triton {triton.__version__}"
