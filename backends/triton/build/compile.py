"""Compiles every launch of a source for a target, with Triton's own front end and without a device.

The compiler runs in a child process. There Triton's driver only names the target, and each launch
stops after compilation. So types, constants, divisibility and options are those that Triton derives
from the arguments of a real launch.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
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

from backends.backend import BackendError, Built, Sizes
from backends.gpu.apart import apart
from backends.gpu.assembly import amdgcn, cubin, sass
from backends.gpu.assembly.mix import Code
from backends.gpu.device.tensors import unplaced
from backends.gpu.model.builds import CompiledLaunch, check_limits, figures
from backends.parallel import on_all_cores
from backends.triton.build.module import Launcher, launcher
from backends.triton.signature import parameters
from backends.triton.table import table as table_of
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.sizes import bind

FILE = "kernel.py"
CUOBJDUMP = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
CACHE = "triton"  # folder of Triton's cache, in which a later run on a device finds the kernels
SECONDS = 60.0  # limit for all launches of one source


def build(source: str, nest: LoopNest, machine: Machine, folder: Path) -> Built:
    """Writes a source to `folder` and compiles its launches for the nest's sizes.

    Raises BackendError("build") where the compiler refuses, hangs or dies, and where no device
    could run the result.
    """
    file = folder / FILE
    file.write_text(source, encoding="utf-8")
    table = table_of(machine)
    warm(machine)
    done = apart(
        _compiled_text,
        *(source, nest, dict(table)),
        seconds=SECONDS,
        stage="build",
        folder=folder,
        keep=(CACHE,),
    )
    _check_launches(done, nest)
    for one in done:
        check_limits(one, table)
    return Built(file, figures(done, table))


def _compiled_text(
    place: Path, source: str, nest: LoopNest, table: Mapping[str, Any]
) -> list[CompiledLaunch]:
    """`compiled` for a source text."""
    return compiled(_written(place, source), nest, table)


def compiled(file: Path, nest: LoopNest, table: Mapping[str, Any]) -> list[CompiledLaunch]:
    """All launches of a source file, in order. Call it in a child process: it leaves Triton unusable."""
    launch = _launcher(file, table)
    sizes = bind(nest.spec, dict(nest.sizes))
    with _recorded() as kernels:
        launch(*(unplaced(p, sizes) for p in parameters(nest)))
    return _disassembled(_each_once(kernels, nest), file.parent / CACHE, table["arch"])


def compile_at(file: Path, nest: LoopNest, machine: Machine, every: Sequence[Sizes]) -> None:
    """Compiles the launches of a built source for some sizes into the cache beside it, on all
    cores. Sizes for which Triton generates the same code are compiled once; those that match the
    nest's own are skipped."""
    warm(machine)
    apart(
        _compiled_at,
        *(
            file.read_text(encoding="utf-8"),
            nest,
            dict(table_of(machine)),
            [dict(s) for s in every],
        ),
        seconds=SECONDS * max(1, len(every)),
        stage="build",
        folder=file.parent,
        keep=(CACHE,),
    )


def _compiled_at(
    place: Path, source: str, nest: LoopNest, table: Mapping[str, Any], every: Sequence[Sizes]
) -> None:
    """`compile_at` for a source text; call it in a child process."""
    launch = _launcher(_written(place, source), table)
    own, *others = (
        [unplaced(p, bind(nest.spec, sizes)) for p in parameters(nest)]
        for sizes in (dict(nest.sizes), *every)
    )
    known = _keys(launch, own)
    lacking = []
    for tensors in others:
        keys = _keys(launch, tensors)
        if not keys <= known:
            lacking.append(tensors)
        known |= keys

    def made(tensors: list[torch.Tensor]) -> None:
        launch.compile(*tensors)

    for _ in on_all_cores(made, lacking):
        pass


def _keys(launch: Launcher, tensors: list[torch.Tensor]) -> set[tuple[str, str]]:
    """The kernels that a launch on these tensors would compile, each with Triton's cache key."""
    found: set[tuple[str, str]] = set()

    def note(*, key: str, fn: Any, **_: Any) -> bool:
        found.add((fn.name, key))
        return True  # skips the compilation

    before, knobs.runtime.jit_cache_hook = knobs.runtime.jit_cache_hook, note
    try:
        launch.compile(*tensors)
    finally:
        knobs.runtime.jit_cache_hook = before
    return found


def _written(place: Path, source: str) -> Path:
    """The file of a source in a folder."""
    file = place / FILE
    if not file.exists():
        file.write_text(source, encoding="utf-8")
    return file


def _launcher(file: Path, table: Mapping[str, Any]) -> Launcher:
    """The launcher of a file's kernels, for a target, with the cache beside the file."""
    driver.set_active(_Nowhere(GPUTarget(table["backend"], table["arch"], table["warp"])))
    knobs.cache.dir = str(file.parent / CACHE)
    return launcher(file, "build")


def _each_once(kernels: list[_Kernel], nest: LoopNest) -> list[_Kernel]:
    """The launches without those of a recurrence's later steps."""
    steps = {launch.name for launch in nest.launches if launch.repeat}
    kept: dict[object, _Kernel] = {}
    for n, one in enumerate(kernels):
        facts = one.kernel.metadata
        kept.setdefault((facts.name, facts.hash) if facts.name in steps else n, one)
    return list(kept.values())


def warm(machine: Machine) -> None:
    """Does once in this process what each child would repeat: about a second of hashing, and
    imports that Triton postpones until it sees a tensor."""
    table = table_of(machine)
    _warm(table["backend"], table["arch"], table["warp"])


@cache
def _warm(backend: str, arch: int | str, warp: int) -> None:
    mangle_type(torch.empty(0))
    make_backend(GPUTarget(backend, arch, warp)).hash()
    from triton.runtime import cache as triton_cache

    key = getattr(triton_cache, "triton_key", None)
    if key:
        key()


class _Nowhere:
    """A driver without a device, which only names the target."""

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
    """A compiled launch in Triton's form."""

    grid: tuple[int, ...]  # programs along each axis
    kernel: Any  # Triton's compiled kernel
    seconds: float


@contextmanager
def _recorded() -> Iterator[list[_Kernel]]:
    """A context in which launches are compiled but not run; yields the list of them."""
    kept: list[_Kernel] = []
    run = JITFunction.run

    def record(self: JITFunction, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        began = time.perf_counter()
        # `warmup` compiles for these arguments without launching.
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


def _disassembled(kernels: list[_Kernel], folder: Path, arch: int | str) -> list[CompiledLaunch]:
    """The launches with their code; equal kernels are disassembled once."""
    codes: dict[str, Code] = {}
    for one in kernels:
        key = one.kernel.metadata.hash
        if key not in codes:
            codes[key] = _code(one.kernel.asm, folder / f"{key}.cubin", arch)
    return [_compiled(one, codes[one.kernel.metadata.hash]) for one in kernels]


def _code(asm: Mapping[str, Any], file: Path, arch: int | str) -> Code:
    """The code in a compiler's output. Writes the cubin to `file` only for the disassembler."""
    if "amdgcn" in asm:
        return amdgcn.parsed(asm["amdgcn"])
    try:
        return cubin.parsed(asm["cubin"], int(arch))
    except cubin.Unknown:
        file.write_bytes(asm["cubin"])
        return sass.code(file, CUOBJDUMP)


def _compiled(one: _Kernel, code: Code) -> CompiledLaunch:
    facts = one.kernel.metadata
    programs = 1
    for extent in one.grid:
        programs *= extent
    return CompiledLaunch(
        name=facts.name,
        programs=programs,
        warps=facts.num_warps,
        stages=facts.num_stages,
        shared=facts.shared,
        seconds=one.seconds,
        code=code,
    )


def _check_launches(done: list[CompiledLaunch], nest: LoopNest) -> None:
    """Raises BackendError("build") where the source's launches differ from the nest's."""
    if not done:
        raise BackendError("build", "`launch` launches no kernel")
    names = [launch.name for launch in nest.launches]
    if len(done) != len(names):
        got = ", ".join(one.name for one in done)
        raise BackendError("build", f"`launch` launches {got}; expected {', '.join(names)}")
