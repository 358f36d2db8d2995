"""The GPU through Triton: detects it, and runs and times kernels on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import triton
from triton import knobs
from triton.runtime.jit import JITFunction

from backends.backend import Arrays, BackendError, Built, Sizes, Timing
from backends.gpu.apart import joined
from backends.gpu.device import running
from backends.gpu.device.gpu import CudaDevice
from backends.gpu.device.nodes import device_turns
from backends.gpu.device.running import looked_in_child, open_device
from backends.gpu.device.tensors import unplaced
from backends.parameters import parameters
from backends.timeline import Bar, facts_of, write_timeline
from backends.triton.build.compile import CACHE, compile_at
from backends.triton.build.module import Launcher, launcher
from backends.triton.device.build_cache import BuildCache, CompiledApart, Lacking
from backends.triton.table import table as table_of
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.sizes import bind
from machines.gpu.facts import device_names


def present(machine: Machine) -> str:
    """Why the machine's GPU is not in this computer; empty where it is.

    A child process looks, once per process. If there is a GPU, this process loads Triton's driver,
    which does not touch the GPU, so that children need not compile it. A process that has already
    opened the GPU looks itself, since its children cannot.
    """
    table = table_of(machine)
    return _present(table["backend"], table["arch"], device_names(machine))


@cache
def _present(backend: str, arch: int | str, names: tuple[str, ...]) -> str:
    built_for = "hip" if torch.version.hip else "cuda" if torch.version.cuda else ""
    if built_for != backend:
        return f"torch here is built for {built_for or 'no GPU'}; the target is {backend}"
    try:
        why = looked_in_child(arch, names)
        if not why:
            triton.runtime.driver.set_active(triton.backends.backends[_VENDORS[backend]].driver())
        return why
    except (BackendError, OSError, RuntimeError) as error:
        return f"the GPU does not answer: {error}"


_VENDORS = {"cuda": "nvidia", "hip": "amd"}  # names of Triton's drivers


def run(
    built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
) -> dict[str, np.ndarray]:
    """The outputs in the dtypes of the spec; they are poisoned before the run."""
    with running.faults("check"):
        launch = _compiled(built, "check", nest, machine, sizes)
    return running.run(launch, nest, sizes, inputs)


def glance(
    built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays, enough_us: float
) -> float:
    """The approximate time of one call in microseconds; see `running.glance`."""
    with running.faults("time"):
        launch = _compiled(built, "time", nest, machine, sizes)
    return running.glance(launch, nest, sizes, inputs, enough_us)


def time(built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays) -> Timing:
    """The median time of one call by device events, for all launches of the kernel together."""
    with running.faults("time"):
        launch = _compiled(built, "time", nest, machine, sizes)
    return running.time(launch, nest, sizes, inputs)


def profile(
    built: Built,
    nest: LoopNest,
    machine: Machine,
    sizes: Sizes,
    inputs: Arrays,
    trace: Path,
) -> Timing:
    """The same as `time`; also writes a timeline with one bar per launch to `trace`."""
    timed = time(built, nest, machine, sizes, inputs)
    with running.faults("time"), device_turns().alone():
        launch = _launcher(built, "time")
        bars = _bars(
            launch, running.sets(nest, sizes, inputs)[0], CudaDevice(), timed.figures["host_us"]
        )
    write_timeline(trace, (Bar(n, us, ts, facts_of(built, n)) for n, ts, us in bars))
    return timed


def load(built: Built, nest: LoopNest, machine: Machine, every: Sequence[Sizes]) -> None:
    """Loads the code for some sizes with its launcher, so that calls there have nothing left to prepare."""
    with running.faults("build"):
        for sizes in every:
            _compiled(built, "build", nest, machine, sizes)


def _launcher(built: Built, stage: str) -> Callable[..., Any]:
    """The source's `launch`; Triton finds the build's kernels in the same cache. The last one is
    cached with its kernels, as a check runs it many times. Where a clean process compiles, this one
    compiles nothing."""
    knobs.cache.dir = str(built.file.parent / CACHE)
    knobs.cache.manager_class = CompiledApart if joined() else BuildCache
    key = (str(built.file), built.file.read_text(encoding="utf-8"))
    if key not in _last:
        _last.clear()
        _last[key] = launcher(built.file, stage)
    return _last[key]


_last: dict[tuple[str, str], Callable[..., Any]] = {}


def _compiled(
    built: Built, stage: str, nest: LoopNest, machine: Machine, sizes: Sizes
) -> Callable[..., Any]:
    """The source's `launch`, compiled and loaded for given sizes. A first call would do this too,
    but while it holds the device lock, for which others wait."""
    launch = _launcher(built, stage)
    if isinstance(launch, Launcher):
        open_device()  # Triton asks for the device's number
        bound = bind(nest.spec, dict(sizes))
        tensors = [unplaced(p, bound) for p in parameters(nest)]
        try:
            kernels = launch.compile(*tensors)
        except Lacking:
            compile_at(built.file, nest, machine, [sizes])
            kernels = launch.compile(*tensors)
        for kernel in kernels:
            _ = kernel.run  # the access makes Triton load the kernel
    return launch


def tensor_launcher(file: Path, alike: bool = False) -> Callable[..., None]:
    """The source's `launch` for tensors on the GPU. The first call uses the cache that a build left
    beside the file, if there is one. alike: whether all calls have contiguous tensors of the same
    dtypes and shapes."""
    launch = launcher(file, "time", alike)
    built = file.parent / CACHE
    waiting = [built] if built.is_dir() else []

    def call(*tensors: torch.Tensor) -> None:
        if not waiting:
            launch(*tensors)
            return
        with knobs.cache.scope():
            knobs.cache.dir = str(waiting.pop())
            knobs.cache.manager_class = BuildCache
            launch(*tensors)

    return call


def _bars(
    launch: Callable[..., Any], tensors: Sequence[torch.Tensor], gpu: CudaDevice, host_us: float
) -> list[tuple[str, float, float]]:
    """The name, start and duration in microseconds of each launch of one call."""
    marks: list[tuple[str, Any, Any]] = []
    plain = JITFunction.run

    def marked(self: JITFunction, *args: Any, **options: Any) -> Any:
        start = gpu.mark()
        kernel = plain(self, *args, **options)
        marks.append((self.__name__, start, gpu.mark()))
        return kernel

    gpu.spin(3 * host_us + 100)
    gpu.flush()
    JITFunction.run = marked
    try:
        launch(*tensors)
    finally:
        JITFunction.run = plain
    gpu.wait()
    began = marks[0][1] if marks else None
    return [(n, gpu.us_between(began, a), gpu.us_between(a, b)) for n, a, b in marks]


def toolchain() -> Mapping[str, str]:
    """The versions on which times depend."""
    runtime = torch.version.cuda or torch.version.hip or "none"
    return {"triton": triton.__version__, "torch": torch.__version__, "runtime": runtime}
