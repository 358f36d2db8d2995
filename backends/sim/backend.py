"""The backend of the simulated accelerator: C++ from a nest, built by g++, run by the simulator."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from backends.backend import Arrays, BackendError, Built, Sizes, Timing
from backends.caged.process import Died
from backends.emit import Templates
from backends.manifest import Manifest
from backends.shared.arrays import Fenced, placed, results
from backends.shared.compiler import Compiler
from backends.shared.launches import calls, tensors
from backends.shared.precompiled import precompiled
from backends.shared.view import kernel_view
from backends.sim import spelling
from backends.sim.admission import require_admissible
from backends.sim.commands import Commands
from backends.sim.interface import interface
from backends.sim.native.kernel_process import kernel_process
from backends.sim.native.load import BuildError, device_include, load
from backends.sim.remembered import Remembered, Run, inputs_digest
from backends.sim.scalars import charged
from backends.sim.static import static_figures
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.sizes import bind

COMPILER = "g++"
# Not optimised: a program only issues commands, and the simulator takes the same time for these.
FLAGS = ("-std=c++20", "-O0", "-shared", "-fPIC", "-Wall", "-Wno-unused-variable")
MAX_CYCLES = 2_000_000_000
SORTS = {  # engines of the figures `busy_<sort>`
    "memory": ("dram", "dma_in", "dma_out"),
    "vector": ("vector", "special", "reduction"),
    "matrix": ("matrix",),
}


class Sim:
    """Emits C++ for `device.h`. The simulator checks correctness and gives times."""

    admit = staticmethod(require_admissible)

    def __init__(self, manifest: Manifest):
        self.manifest = manifest
        self.templates = Templates(manifest.name, {"axis": spelling.axis})
        self._remembered = Remembered()

    def emit(self, nest: LoopNest, machine: Machine) -> str:
        """One translation unit with a kernel function for each launch."""
        self.manifest.require_dtypes(nest)
        return self.templates.render("kernel.cc.j2", **kernel_view(nest, spelling.NAMES, Commands))

    def build(self, source: str, nest: LoopNest, machine: Machine, folder: Path) -> Built:
        """A shared library in `folder`, which the simulator loads."""
        self.admit(source)
        return Compiler(COMPILER, FLAGS).build(charged(source), folder, "kernel.cc", include())

    def interface(self, machine: Machine) -> str:
        """The device interface with examples."""
        return interface()

    def words(self) -> Collection[str]:
        """Reserved words, with which a kernel's names may clash."""
        return spelling.WORDS

    def run(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> dict[str, np.ndarray]:
        """The outputs, in the dtypes of the spec. Raises BackendError("check") if anything else is
        written."""
        buffers, _ = self._simulate("check", built, nest, machine, sizes, inputs)
        return results(nest, buffers, inputs)

    def time(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> Timing:
        """The simulated time from a cold start, with all data in DRAM.

        Simulations are deterministic, so one that a check has just run is not repeated.
        """
        known = self._remembered.find(_run(built, nest, machine, sizes, inputs))
        if known is not None:
            return _timing(known, machine)
        buffers, known = self._simulate("time", built, nest, machine, sizes, inputs)
        return replace(_timing(known, machine), outputs=results(nest, buffers, inputs))

    def profile(
        self,
        built: Built,
        nest: LoopNest,
        machine: Machine,
        sizes: Sizes,
        inputs: Arrays,
        trace: Path,
    ) -> Timing:
        """The same as `time`, with a timeline of every engine."""
        _, result = self._simulate("time", built, nest, machine, sizes, inputs, trace=str(trace))
        return _timing(result, machine)

    def static_figures(self, source: str) -> Mapping[str, float]:
        """The facts that a text's commands show; see `ir.estimate.kernel_features`."""
        return static_figures(source)

    def available(self, machine: Machine) -> Mapping[str, Any]:
        """Everything, if the simulator compiles. It is compiled here once if necessary."""
        try:
            load()
            include()
        except BuildError as error:
            return {"correct_by": None, "time_kind": None, "why": str(error)}
        return {
            "correct_by": "simulator",
            "time_kind": "simulated",
            "why": "",
            "toolchain": Compiler(COMPILER, FLAGS).version(),
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
    ) -> tuple[dict[str, Fenced], dict[str, Any]]:
        simulator = load()
        parameters, buffers = tensors(nest), placed(nest, sizes, inputs)
        launches = [
            (spelling.NAMES.launch(c.launch), list(c.tensors), list(c.sizes))
            for c in calls(nest, bind(nest.spec, sizes))
        ]
        try:
            with kernel_process(built.file) as place:
                result = simulator.simulate(
                    machine=device_machine(machine),
                    socket=place,
                    launches=launches,
                    tensors=[buffer.array for buffer in buffers.values()],
                    dtypes=[p.dtype for p in parameters],
                    names=[p.name for p in parameters],
                    inputs=[p.name for p in parameters if p.role == "input"],
                    max_cycles=MAX_CYCLES,
                    trace=trace,
                )
        except simulator.SimulationError as error:
            raise BackendError(stage, str(error)) from None
        except Died as died:
            raise BackendError(stage, str(died), died.kind) from None
        self._remembered.add(_run(built, nest, machine, sizes, inputs), result)
        return buffers, result


def _run(built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays) -> Run:
    """The key of a simulation: everything that it depends on."""
    names = tuple(p.name for p in tensors(nest) if p.role == "input")
    return Run(built, machine, dict(sizes), inputs_digest(inputs, names))


def device_machine(machine: Machine) -> dict[str, Any]:
    """The parameters of the simulator: the target's own table, and its local memory."""
    return {"local_bytes": machine.on_chip_bytes, **machine.details["sim"]}


def _timing(result: Mapping[str, Any], machine: Machine) -> Timing:
    cycles, table = result["cycles"], machine.details["sim"]
    elements = len(result["elements"])
    engines = {name: e["busy"] / (elements * cycles) for name, e in result["engines"].items()}
    engines["dram"] = result["memory_busy"]["dram"] / (table["dram"]["channels"] * cycles)
    figures = {"cycles": float(cycles), "events": float(result["events"])}
    for sort, names in SORTS.items():
        figures[f"busy_{sort}"] = min(1.0, max(engines.get(n, 0.0) for n in names))
    figures |= {f"{name}_bytes": float(n) for name, n in result["bytes"].items()}
    for space, own in (("memory", "dram"), ("cache", "shared")):
        figures[f"{space}_bytes"] = figures[f"{own}_read_bytes"] + figures[f"{own}_write_bytes"]
    for name, engine in result["engines"].items():
        figures[f"{name}_stall"] = engine["stall"] / (elements * cycles)
    return Timing(float(result["microseconds"]), "simulated", figures, engines)


def include() -> tuple[Path, ...]:
    """The folder of the device interface, which is precompiled here once."""
    return precompiled(COMPILER, FLAGS, (device_include(),), "device.h")
