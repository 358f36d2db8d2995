"""Kernels with schedules, one for each feature of emission."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from backends.backend import Backend
from backends.gpu.source.launches import Call
from backends.hip import emulator
from backends.registry import REGISTRY
from ir.lower.lower import lower
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.parse.parse import parse_schedule, parse_workload
from ir.workload import Workload

TILES = "tile(m, size=64)\ntile(n, size=64)\ntile(k, size=32)\nplace(m.outer, level=grid)\n"
TILES += "place(n.outer, level=grid)\nplace(k.outer, level=loop)\ncompute(acc, unit=matrix)\n"
FOLDER = Path(__file__).parents[1] / "testdata"
CASES = {  # by name: a kernel of FOLDER and its decisions
    "rows": ("rows", "tile(m, size=4)\nplace(m.outer, level=grid)\nthreads(y, count=256)"),
    "staged": ("staged", TILES + "pipeline(x, stages=2)\npipeline(w, stages=2)"),
    "ring": ("staged", TILES + "pipeline(x, stages=3)\npipeline(w, stages=3)"),
    "streamed": (
        "streamed",
        "tile(h, size=1)\ntile(m, size=64)\ntile(n, size=64)\nplace(h.outer, level=grid)\n"
        "place(m.outer, level=grid)\nplace(n.outer, level=loop)\ncompute(s, unit=matrix)\n"
        "compute(o, unit=matrix)",
    ),
    "packed": (
        "streamed",
        "kernel(l)\npack(p, order=h_n_m)\ntile(h, size=1)\ntile(m, size=32)\n"
        "place(h.outer, level=grid)\nplace(m.outer, level=grid)\nonline(mx, into=l)\n"
        "compute(s, unit=matrix)\ncompute(o, unit=matrix)\nprecision(o, dtype=bf16)",
    ),
    "taps": (  # a matrix instruction with one register of B along K, and A in registers
        "taps",
        "tile(c, size=64)\ntile(i, size=1)\ntile(b, size=1)\ntile(o, size=32)\ntile(l, size=32)\n"
        "place(b.outer, level=grid)\nplace(o.outer, level=grid)\nplace(l.outer, level=grid)\n"
        "place(c.outer, level=loop)\nplace(i.outer, level=loop)\ncompute(y, unit=matrix)\n"
        "pipeline(x, stages=3)\npipeline(w, stages=3)\nthreads(y, count=256)",
    ),
    "direct": (
        "linear",
        f"{TILES.replace('acc', 'y')}pipeline(x, stages=2)\npipeline(w, stages=2)\n"
        "copy(x, by=lds)\ncopy(w, by=lds)\nthreads(y, count=256)",
    ),
    "scaled": (
        "scaled",
        "tile(m, size=64)\ntile(n, size=64)\ntile(b, size=4)\nplace(m.outer, level=grid)\n"
        "place(n.outer, level=grid)\nplace(b.outer, level=loop)\ncompute(y, unit=matrix)\n"
        "pipeline(x, stages=2)\npipeline(w, stages=2)\npipeline(s, stages=2)\n"
        "pipeline(t, stages=2)\nthreads(y, count=256)",
    ),
    "scanned": ("scanned", "tile(m, size=4)\nplace(m.outer, level=grid)"),
    "jagged": ("jagged", "tile(b, size=1)\ntile(l, size=32)\nplace(b.outer, level=grid)"),
    "persistent": (
        "persistent",
        "tile(m, size=1)\nplace(m.outer, level=grid)\nthreads(y, count=256)\n"
        "persistent(y, programs=1)",
    ),
}


def machine_of(name: str) -> Machine:
    """A target as this backend describes it."""
    return REGISTRY.served_by(REGISTRY.target(name), backend())


def backend() -> Backend:
    """This backend."""
    return REGISTRY.backend("hip")


def work_of(name: str) -> Workload:
    """The kernel of a case, with its sizes."""
    kernel, _ = CASES[name]
    return parse_workload((FOLDER / f"{kernel}.kir").read_text(encoding="utf-8"), kernel)


@cache
def nest_of(name: str, machine: str = "mi300") -> LoopNest:
    """A case, lowered for a machine."""
    work = work_of(name)
    schedule = parse_schedule(f"schedule({work.spec.name})\n{CASES[name][1]}\n")
    return lower(work.spec, schedule, machine_of(machine), work.timed_sizes)


def emitted(name: str, machine: str = "mi300") -> str:
    """The source of a case."""
    return backend().emit(nest_of(name, machine), machine_of(machine))


def source_of(body: str, parameters: str = "float* __restrict__ y_ptr", threads: int = 64) -> str:
    """A source with one kernel `k`."""
    return (
        '#include <hip/hip_runtime.h>\n#include "kernel.h"\n'
        f'extern "C" __global__ void __launch_bounds__({threads}, 1) k({parameters}) {{\n'
        f"  const int thread = threadIdx.x;\n{body}\n}}\n"
    )


def emulated(
    source: str,
    folder: Path,
    *arrays: np.ndarray,
    grid: int = 1,
    threads: int = 64,
    shared: int = 0,
    reversed_order: bool = False,
) -> None:
    """Runs the kernel `k` of a source on arrays, which are its parameters x0, x1, ..."""
    file = folder / "kernel.hip"
    file.write_text(source, encoding="utf-8")
    code = emulator.library(file, {"k"}, {})
    call = Call("k", grid, threads, shared, tuple(range(len(arrays))), ())
    named = {f"x{n}": array for n, array in enumerate(arrays)}
    with emulator.emulation(code, (call,), named) as emulation:
        emulation.launch(call, reversed_order)
        for buffer, array in zip(emulation.buffers.values(), arrays, strict=True):
            array[...] = buffer.array
