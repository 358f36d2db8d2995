"""The GPU: detection, and kernels run and timed on it.

Nothing here may touch the GPU in a process that forks afterwards; what does touch it is called in
the process that was forked for one candidate. Tensors are between fences of NaN bits: an
out-of-bounds read shows in the results, an out-of-bounds write in the fence.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import triton
from triton import knobs
from triton.runtime.jit import JITFunction

from backends.backend import Arrays, BackendError, Built, Sizes, Timing
from backends.fences import require_untouched
from backends.gpu.device import timing
from backends.gpu.device.gpu import DEVICE, CudaDevice, alone, lack
from backends.gpu.device.nvml import clocks
from backends.timeline import Bar, facts_of, write_timeline
from backends.triton.build.child import fault, in_child
from backends.triton.build.compile import CACHE
from backends.triton.build.module import launcher
from backends.triton.signature import parameters
from backends.triton.table import table as table_of
from backends.triton.tensors import array, placed, poisoned, same_bits
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.sizes import bind
from machines.gpu.facts import device_names

SECONDS = 0.3  # of measured calls
LOOK_SECONDS = 60.0  # limit for the child that looks for the GPU
FENCE = 4096  # bytes before and after each tensor
MOST_SETS = 4  # sets of tensors that timed calls rotate through
FREE_SHARE = 0.5  # share of free memory that the sets may take
SHIFT = 997  # elements by which inputs are rotated from set to set


def present(machine: Machine) -> str:
    """Why the machine's GPU is not in this computer; empty where it is.

    A child looks, once per process. If there is a GPU, this process loads Triton's driver, which
    does not touch the GPU, so that children need not compile it. A process that has opened the GPU
    already looks for itself, since its children cannot.
    """
    table = table_of(machine)
    return _present(table["backend"], table["arch"], device_names(machine))


@cache
def _present(backend: str, arch: int | str, names: tuple[str, ...]) -> str:
    built_for = "hip" if torch.version.hip else "cuda" if torch.version.cuda else ""
    if built_for != backend:
        return f"torch here is built for {built_for or 'no GPU'}; the target is {backend}"
    try:
        why = _looked_in_child(arch, names)
        if not why:
            triton.runtime.driver.set_active(triton.backends.backends[_VENDORS[backend]].driver())
        return why
    except (BackendError, OSError, RuntimeError) as error:
        return f"the GPU does not answer: {error}"


def _looked_in_child(arch: int | str, names: tuple[str, ...]) -> str:
    """Why the GPU does not serve, found in a child, so that this process can still fork others that
    open it.

    A process that has used the CUDA driver (`torch.export` does) cannot have such children and
    looks for itself.
    """
    if torch.cuda.is_initialized():
        return lack(arch, names)
    with tempfile.TemporaryDirectory() as folder:
        why = in_child(lambda: _look(arch, names), LOOK_SECONDS, "check", Path(folder))
    return lack(arch, names) if why is None else why


def _look(arch: int | str, names: tuple[str, ...]) -> str | None:
    """`lack`; None in a child of a process that has used the driver."""
    return None if torch.cuda._is_in_bad_fork() else lack(arch, names)


_VENDORS = {"cuda": "nvidia", "hip": "amd"}  # names of Triton's drivers


def run(
    built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
) -> dict[str, np.ndarray]:
    """The outputs in the dtypes of the spec; they are poisoned before the run."""
    with _faults("check"):
        launch = _launcher(built, "check")
        fenced = _fenced(nest, sizes, inputs)
        launch(*(f.tensor for f in fenced.values()))
        torch.cuda.synchronize()
        given = ((t.name, placed(inputs[t.name], t.dtype, DEVICE)) for t in nest.spec.inputs)
        require_untouched(fenced, given)
        return {t.name: array(fenced[t.name].tensor) for t in nest.spec.outputs}


def time(built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays) -> Timing:
    """The median time of one call by device events, all launches of the kernel together."""
    with _faults("time"):
        launch = _launcher(built, "time")
        sets = _sets(nest, sizes, inputs)
        with alone():
            gpu = CudaDevice()
            times = timing.measure(lambda tensors: launch(*tensors), sets, gpu, SECONDS)
            figures = times.figures() | clocks(gpu.uuid)
        return Timing(times.us, "measured", figures)


def profile(
    built: Built,
    nest: LoopNest,
    machine: Machine,
    sizes: Sizes,
    inputs: Arrays,
    trace: Path,
) -> Timing:
    """As `time`; also writes a timeline with one bar per launch to `trace`."""
    timed = time(built, nest, machine, sizes, inputs)
    with _faults("time"), alone():
        launch = _launcher(built, "time")
        bars = _bars(launch, _sets(nest, sizes, inputs)[0], CudaDevice(), timed.figures["host_us"])
    write_timeline(trace, (Bar(n, us, ts, facts_of(built, n)) for n, ts, us in bars))
    return timed


@dataclass(frozen=True, slots=True)
class _Fenced:
    """A tensor inside a buffer whose ends are fences."""

    tensor: torch.Tensor
    buffer: torch.Tensor

    def whole(self) -> bool:
        """Whether the fences are intact."""
        ends = (self.buffer[:FENCE], self.buffer[-FENCE:])
        return all(bool((end == _BITS).all()) for end in ends)

    def holds(self, given: torch.Tensor) -> bool:
        """Whether the tensor has the bits of another."""
        return same_bits(self.tensor, given)


_BITS = 0xFF  # every byte of a fence: NaN in all float formats


def _fence(given: torch.Tensor) -> _Fenced:
    """A copy of a tensor between fences, with its start aligned to 512 bytes."""
    room = -(-given.nbytes // FENCE) * FENCE
    buffer = torch.full((room + 2 * FENCE,), _BITS, dtype=torch.uint8, device=given.device)
    inner = buffer[FENCE : FENCE + given.nbytes].view(given.dtype).view(given.shape)
    return _Fenced(inner.copy_(given), buffer)


def _fenced(nest: LoopNest, sizes: Sizes, inputs: Arrays) -> dict[str, _Fenced]:
    """All tensors of a launch, in order: inputs on the device, the rest poisoned."""
    bound = bind(nest.spec, sizes)
    return {
        p.name: _fence(
            placed(inputs[p.name], p.dtype, DEVICE)
            if p.role == "input"
            else poisoned(p, bound, DEVICE)
        )
        for p in parameters(nest)
    }


def _sets(nest: LoopNest, sizes: Sizes, inputs: Arrays) -> list[list[torch.Tensor]]:
    """Several sets of all tensors: floats are rotated, which keeps their range; integers are the
    same."""
    first = [f.tensor for f in _fenced(nest, sizes, inputs).values()]
    given = [p.role == "input" for p in parameters(nest)]
    bytes_of_set = max(1, sum(t.nbytes for t in first))
    room = FREE_SHARE * torch.cuda.mem_get_info()[0]
    count = int(min(MOST_SETS, 1 + room // bytes_of_set))
    return [first] + [
        [_shifted(t, n) if i else t.clone() for t, i in zip(first, given, strict=True)]
        for n in range(1, count)
    ]


def _shifted(tensor: torch.Tensor, turn: int) -> torch.Tensor:
    if not tensor.is_floating_point():
        return tensor.clone()
    return torch.roll(tensor.reshape(-1), turn * SHIFT).view(tensor.shape)


def _launcher(built: Built, stage: str) -> Callable[..., Any]:
    """The source's `launch`; Triton finds what the build compiled in the same cache."""
    knobs.cache.dir = str(built.file.parent / CACHE)
    return launcher(built.file, stage)


def tensor_launcher(file: Path) -> Callable[..., None]:
    """The source's `launch` for tensors on the GPU. The first call uses the cache that a build left
    beside the file, if there is one."""
    launch = launcher(file, "time")
    built = file.parent / CACHE
    waiting = [built] if built.is_dir() else []

    def call(*tensors: torch.Tensor) -> None:
        if not waiting:
            launch(*tensors)
            return
        with knobs.cache.scope():
            knobs.cache.dir = str(waiting.pop())
            launch(*tensors)

    return call


def _bars(
    launch: Callable[..., Any], tensors: Sequence[torch.Tensor], gpu: CudaDevice, host_us: float
) -> list[tuple[str, float, float]]:
    """Each launch of one call: its name, start and duration in microseconds."""
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


@contextmanager
def _faults(stage: str) -> Iterator[None]:
    """A context that turns any exception of candidate code into a BackendError(stage)."""
    try:
        yield
    except BackendError:
        raise
    except Exception as error:
        raise BackendError(stage, fault(error)) from error


def toolchain() -> Mapping[str, str]:
    """The versions that times depend on."""
    runtime = torch.version.cuda or torch.version.hip or "none"
    return {"triton": triton.__version__, "torch": torch.__version__, "runtime": runtime}
