"""The backend of the local machine: C++ from a nest, built by g++, run and timed in this process."""

from __future__ import annotations

import ctypes
import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from backends.backend import Arrays, BackendError, Built, Sizes, Timing
from backends.cpp.admission import require_admissible
from backends.cpp.view import kernel_view, launch_name
from backends.emit import Templates
from backends.manifest import Manifest
from backends.shared.arrays import Fenced, from_device, poisoned, to_device
from backends.shared.clock import measured
from backends.shared.compiler import Compiler
from backends.shared.launches import Call, calls, tensors
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.sizes import bind

# No -ffast-math: NaN, infinities and the order of sums are those that the source says.
FLAGS = (
    *("-std=c++20", "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-fwrapv"),
    *("-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast"),
    *("-mprefer-vector-width=512", "-Wall", "-Wno-unused", "-Wno-unknown-pragmas"),
)
COMPILER = Compiler("g++", FLAGS)
INCLUDE = (Path(__file__).parent, Path(__file__).parents[1] / "shared" / "prelude")


class _Args(ctypes.Structure):
    """What a kernel is called with; see `Args` of `kernel.h`."""

    _fields_ = (
        ("tensors", ctypes.POINTER(ctypes.c_void_p)),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("threads", ctypes.c_int64),
    )


class Cpp:
    """Emits C++; correctness and time by running it here, on all cores that this process may use."""

    def __init__(self, manifest: Manifest):
        self.manifest = manifest
        self.templates = Templates(manifest.name)

    def emit(self, nest: LoopNest, machine: Machine) -> str:
        """One translation unit with a function for each launch."""
        if lacking := self.manifest.lacks(nest):
            held = ", ".join(self.manifest.dtypes)
            raise BackendError("emit", f"tensors of {lacking} are not held here; these are: {held}")
        return self.templates.render("kernel.cc.j2", **kernel_view(nest))

    def build(self, source: str, nest: LoopNest, machine: Machine, folder: Path) -> Built:
        """A shared library under `folder`; a source that is more than kernels is refused."""
        require_admissible(source)
        return COMPILER.build(source, folder, "kernel.cc", INCLUDE)

    def run(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> dict[str, np.ndarray]:
        """The outputs, in the dtypes of the spec; nothing else is written."""
        held = _placed(nest, sizes, inputs)
        _launcher(built, nest, sizes, [f.array for f in held.values()], "check")()
        for name, fenced in held.items():
            if not fenced.whole():
                raise BackendError("check", f"the kernel writes outside `{name}`")
        for t in nest.spec.inputs:
            if held[t.name].array.tobytes() != to_device(inputs[t.name], t.dtype).tobytes():
                raise BackendError("check", f"the kernel changed its input `{t.name}`")
        return {t.name: from_device(held[t.name].array, t.dtype) for t in nest.spec.outputs}

    def time(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> Timing:
        """The median time of a call, all launches together, data in caches as far as it fits."""
        held = [f.array for f in _placed(nest, sizes, inputs).values()]
        times = measured(_launcher(built, nest, sizes, held, "time"))
        return Timing(times.us, "measured", times.figures() | {"cores": float(cores())})

    def profile(
        self,
        built: Built,
        nest: LoopNest,
        machine: Machine,
        sizes: Sizes,
        inputs: Arrays,
        trace: Path,
    ) -> Timing:
        """As `time`, with a bar for each launch."""
        timing = self.time(built, nest, machine, sizes, inputs)
        held = [f.array for f in _placed(nest, sizes, inputs).values()]
        bars, start = [], 0.0
        for call in calls(nest, bind(nest.spec, sizes)):
            us = measured(_run(_library(built, "time"), [call], held), 0.01).us
            bars.append(
                {"name": call.launch, "ph": "X", "ts": start, "dur": us, "pid": 0, "tid": 0}
            )
            start += us
        trace.write_text(json.dumps({"traceEvents": bars}), encoding="utf-8")
        return timing

    def available(self, machine: Machine) -> Mapping[str, Any]:
        """Everything, where there is the compiler."""
        version = COMPILER.version()
        if not version:
            why = f"there is no {COMPILER.command}; install it"
            return {"correct_by": None, "time_kind": None, "why": why}
        return {
            "correct_by": "device",
            "time_kind": "measured",
            "own_cores": True,
            "why": "",
            "toolchain": version,
            "device": f"{processor()}, {cores()} cores",
        }


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


@cache
def processor() -> str:
    """The processor's name as the system has it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _placed(nest: LoopNest, sizes: Sizes, inputs: Arrays) -> dict[str, Fenced]:
    """All tensors between fences: inputs as given, the rest poisoned."""
    bound = bind(nest.spec, sizes)
    return {
        p.name: Fenced(
            to_device(inputs[p.name], p.dtype) if p.role == "input" else poisoned(p, bound)
        )
        for p in tensors(nest)
    }


def _library(built: Built, stage: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(built.file))
    except OSError as error:
        raise BackendError(stage, f"the library cannot be loaded: {error}") from None


def _launcher(
    built: Built, nest: LoopNest, sizes: Sizes, held: Sequence[np.ndarray], stage: str
) -> Callable[[], None]:
    """What runs all launches on arrays."""
    return _run(_library(built, stage), calls(nest, bind(nest.spec, sizes)), held)


def _run(
    library: ctypes.CDLL, made: Sequence[Call], held: Sequence[np.ndarray]
) -> Callable[[], None]:
    ready = []
    for call in made:
        pointers = (ctypes.c_void_p * max(1, len(call.tensors)))(
            *(held[n].ctypes.data for n in call.tensors)
        )
        numbers = (ctypes.c_int64 * max(1, len(call.sizes)))(*call.sizes)
        function = getattr(library, launch_name(call.launch), None)
        if function is None:
            raise BackendError("check", f"the source defines no `{launch_name(call.launch)}`")
        function.restype = None
        ready.append((function, ctypes.byref(_Args(pointers, numbers, cores()))))

    def run() -> None:
        for function, args in ready:
            function(args)

    return run
