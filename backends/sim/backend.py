"""The backend of the simulated accelerator: C++ from a nest, built by g++, run by the simulator."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from backends.backend import Arrays, BackendError, Built, Sizes, Timing
from backends.emit import Templates
from backends.manifest import Manifest
from backends.sim import spelling
from backends.sim.admission import require_admissible
from backends.sim.arrays import from_device, poisoned, to_device
from backends.sim.native.load import BuildError, load
from backends.sim.native.precompiled import kernel_include
from backends.sim.remembered import Remembered, Run, inputs_digest
from backends.sim.static import static_figures
from backends.sim.view import kernel_view
from ir.machine import Machine
from ir.nest.nest import LoopNest, Parameter
from ir.sizes import bind

COMPILER = "g++"
# Not optimised: a program only issues commands, which take the simulator the same time.
FLAGS = ("-std=c++20", "-O0", "-shared", "-fPIC", "-Wall", "-Wno-unused-variable")
BUILD_SECONDS = 60
MAX_CYCLES = 2_000_000_000
SORTS = {  # what the figures `busy_<sort>` are of
    "memory": ("dram", "dma_in", "dma_out"),
    "vector": ("vector", "special", "reduction"),
    "matrix": ("matrix",),
}


class Sim:
    """Emits C++ against `device.h`; correctness by simulator, time simulated."""

    def __init__(self, manifest: Manifest):
        self.manifest = manifest
        self.templates = Templates(manifest.name)
        self._remembered = Remembered()

    def emit(self, nest: LoopNest, machine: Machine) -> str:
        """One translation unit with a kernel function for each launch."""
        if lacking := self.manifest.lacks(nest):
            held = ", ".join(self.manifest.dtypes)
            raise BackendError("emit", f"tensors of {lacking} are not held here; these are: {held}")
        return self.templates.render("kernel.cc.j2", **kernel_view(nest))

    def build(self, source: str, nest: LoopNest, machine: Machine, folder: Path) -> Built:
        """A shared library under `folder`; the simulator loads it."""
        require_admissible(source)
        text, library = folder / "kernel.cc", folder / "kernel.so"
        text.write_text(source, encoding="utf-8")
        include = kernel_include(COMPILER, FLAGS)
        command = [COMPILER, *FLAGS, f"-I{include}", text.name, "-o", library.name]
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=BUILD_SECONDS
            )
        except FileNotFoundError:
            raise BackendError("build", f"there is no {COMPILER}; install it") from None
        except subprocess.TimeoutExpired:
            raise BackendError("build", f"{COMPILER} took over {BUILD_SECONDS} s") from None
        if done.returncode:
            raise BackendError("build", _first_errors(done.stderr))
        return Built(library, {"library_bytes": float(os.path.getsize(library))})

    def words(self) -> Collection[str]:
        """What no name of a text may be but the text's own."""
        return spelling.WORDS

    def run(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> dict[str, np.ndarray]:
        """The outputs, in the dtypes of the spec."""
        arrays, _ = self._simulate("check", built, nest, machine, sizes, inputs)
        return {t.name: from_device(arrays[t.name], t.dtype) for t in nest.spec.outputs}

    def time(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> Timing:
        """The simulated time from a cold start, data in DRAM.

        A simulation is the same each time, so one that a check has just made is not repeated.
        """
        known = self._remembered.find(_run(built, nest, machine, sizes, inputs))
        if known is None:
            _, known = self._simulate("time", built, nest, machine, sizes, inputs)
        return _timing(known, machine)

    def profile(
        self,
        built: Built,
        nest: LoopNest,
        machine: Machine,
        sizes: Sizes,
        inputs: Arrays,
        trace: Path,
    ) -> Timing:
        """As `time`, with a timeline of every engine."""
        _, result = self._simulate("time", built, nest, machine, sizes, inputs, trace=str(trace))
        return _timing(result, machine)

    def static_figures(self, source: str) -> Mapping[str, float]:
        """What the commands in a text show; see `ir.estimate.character`."""
        return static_figures(source)

    def available(self, machine: Machine) -> Mapping[str, Any]:
        """Everything, where the simulator compiles; it is compiled here, once, if need be."""
        try:
            load()
            kernel_include(COMPILER, FLAGS)
        except BuildError as error:
            return {"correct_by": None, "time_kind": None, "why": str(error)}
        return {
            "correct_by": "simulator",
            "time_kind": "simulated",
            "why": "",
            "toolchain": _compiler_version(),
        }

    def _simulate(
        self,
        stage: str,
        built: Built,
        nest: LoopNest,
        machine: Machine,
        sizes: Sizes,
        inputs: Arrays,
        trace: str | None = None,
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        simulator = load()
        asked = _run(built, nest, machine, sizes, inputs)  # a kernel may change its inputs
        bound = bind(nest.spec, sizes)
        parameters = _parameters(nest)
        arrays = {
            p.name: to_device(inputs[p.name], p.dtype) if p.role == "input" else poisoned(p, bound)
            for p in parameters
        }
        number = {p.name: n for n, p in enumerate(parameters)}
        launches = [
            (
                spelling.launch(launch.name),
                [number[p.name] for p in launch.parameters],
                [*(bound[s] for s in launch.sizes), *([step] if repeat else [])],
            )
            for repeat, group in nest.groups()
            for step in (repeat.steps(bound) if repeat else (0,))
            for launch in group
        ]
        try:
            result = simulator.simulate(
                machine=device_machine(machine),
                library=str(built.file),
                launches=launches,
                tensors=list(arrays.values()),
                dtypes=[p.dtype for p in parameters],
                names=[p.name for p in parameters],
                max_cycles=MAX_CYCLES,
                trace=trace,
            )
        except simulator.SimulationError as error:
            raise BackendError(stage, str(error)) from None
        self._remembered.add(asked, result)
        return arrays, result


def _run(built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays) -> Run:
    """A simulation, by all that it depends on."""
    names = tuple(p.name for p in _parameters(nest) if p.role == "input")
    return Run(built, machine, dict(sizes), inputs_digest(inputs, names))


def device_machine(machine: Machine) -> dict[str, Any]:
    """The numbers that the simulator takes: the target's own table, and its scratch."""
    return {"scratch_bytes": machine.scratch_bytes, **machine.details["sim"]}


def _parameters(nest: LoopNest) -> tuple[Parameter, ...]:
    """Every global tensor of a nest, each once."""
    return tuple({p.name: p for launch in nest.launches for p in launch.parameters}.values())


def _timing(result: Mapping[str, Any], machine: Machine) -> Timing:
    cycles, table = result["cycles"], machine.details["sim"]
    elements = len(result["elements"])
    engines = {name: e["busy"] / (elements * cycles) for name, e in result["engines"].items()}
    engines["dram"] = result["memory_busy"]["dram"] / (table["dram"]["channels"] * cycles)
    figures = {"cycles": float(cycles), "events": float(result["events"])}
    for sort, names in SORTS.items():
        figures[f"busy_{sort}"] = min(1.0, max(engines.get(n, 0.0) for n in names))
    figures |= {f"{name}_bytes": float(n) for name, n in result["bytes"].items()}
    for name, engine in result["engines"].items():
        figures[f"{name}_stall"] = engine["stall"] / (elements * cycles)
    return Timing(float(result["microseconds"]), "simulated", figures, engines)


@cache
def _compiler_version() -> str:
    """The compiler's name and version."""
    command = [COMPILER, "-dumpfullversion"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"{COMPILER} {done.stdout.strip()}"


def _first_errors(text: str) -> str:
    """The lines of a compiler's output that say what is wrong."""
    lines = [line for line in text.splitlines() if "error" in line]
    return "\n".join(lines[:4]) or text[-400:]
