"""The backend of the local machine: C++ from a nest, built by g++, run and timed in this process."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from backends.backend import Arrays, Built, Sizes, Timing
from backends.cpp.admission import require_admissible
from backends.cpp.view import NAMES, view
from backends.emit import Templates
from backends.manifest import Manifest
from backends.shared.arrays import placed, results
from backends.shared.clock import measured
from backends.shared.compiler import Compiler
from backends.shared.library import launches
from backends.timeline import Bar, write_timeline
from ir.machine import Machine
from ir.nest.nest import LoopNest

# No -ffast-math: NaN, infinities and the order of sums are those that the source says.
FLAGS = (
    *("-std=c++20", "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-fwrapv"),
    *("-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast"),
    *("-mprefer-vector-width=512", "-Wall", "-Wno-unused", "-Wno-unknown-pragmas"),
)
COMPILER = Compiler("g++", FLAGS)
INCLUDE = (Path(__file__).parent, Path(__file__).parents[1] / "shared" / "prelude")


class Cpp:
    """Emits C++; correctness and time by running it here, on all cores that this process may use."""

    def __init__(self, manifest: Manifest):
        self.manifest = manifest
        self.templates = Templates(manifest.name)

    def emit(self, nest: LoopNest, machine: Machine) -> str:
        """One translation unit with a function for each launch."""
        self.manifest.require_dtypes(nest)
        return self.templates.render("kernel.cc.j2", **view(nest))

    def build(self, source: str, nest: LoopNest, machine: Machine, folder: Path) -> Built:
        """A shared library under `folder`; a source that is more than kernels is refused."""
        require_admissible(source)
        return COMPILER.build(source, folder, "kernel.cc", INCLUDE)

    def run(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> dict[str, np.ndarray]:
        """The outputs, in the dtypes of the spec; nothing else is written."""
        buffers = placed(nest, sizes, inputs)
        for _, launch in launches(built, NAMES, nest, sizes, buffers, cores()):
            launch()
        return results(nest, buffers, inputs)

    def time(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> Timing:
        """The median time of a call, all launches together, data in caches as far as it fits."""
        buffers = placed(nest, sizes, inputs)
        found = [launch for _, launch in launches(built, NAMES, nest, sizes, buffers, cores())]

        def call() -> None:
            for launch in found:
                launch()

        times = measured(call)
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
        timing, buffers = (
            self.time(built, nest, machine, sizes, inputs),
            placed(nest, sizes, inputs),
        )
        found = launches(built, NAMES, nest, sizes, buffers, cores())
        write_timeline(trace, (Bar(name, measured(call, 0.01).us) for name, call in found))
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
