"""The Triton backend: emits Python for a nest, and compiles it for a GPU that need not be present."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from backends.backend import Arrays, Built, Sizes, Timing
from backends.gpu.device.nodes import DEVICE, chips, driver, nodes
from backends.gpu.model.model import modelled, modelled_build
from backends.gpu.program import tile_program
from backends.gpu.text import program_text
from backends.manifest import Manifest
from backends.timeline import Bar, facts_of, write_timeline
from backends.triton.build.admission import require_admissible, require_host
from backends.triton.emit.names import WORDS, spelled
from backends.triton.emit.spelling import templates
from backends.triton.emit.view import kernel_view
from backends.triton.interface import interface
from backends.triton.rules import RULES
from backends.triton.static import static_figures
from ir.machine import Machine
from ir.nest.nest import LoopNest, Parameter
from ir.spec import INNER
from machines.gpu.facts import device_names


class Triton:
    """Emits one importable file with kernels and launcher. On the target's own GPU, kernels run and
    are timed there; elsewhere they are interpreted, and their time is modelled."""

    admit = staticmethod(require_admissible)
    require_host = staticmethod(require_host)

    def __init__(self, manifest: Manifest):
        self.manifest = manifest
        self.templates = templates()
        # Each interpreted run takes its programs in another order, so that races give other bits.
        # The result of a kernel without races does not depend on the order.
        self._orders = itertools.count()

    def emit(self, nest: LoopNest, machine: Machine) -> str:
        """The source: one module with a jit function for each launch, `launch`, and a function
        named after the kernel."""
        self.manifest.require_dtypes(nest, INNER)
        return self.templates.render("kernel.py.j2", **kernel_view(nest, machine))

    def levels(self, nest: LoopNest, machine: Machine) -> Mapping[str, str]:
        """The text of the tile program, under the names of the source."""
        return {"tile": program_text(tile_program(spelled(nest), machine, RULES))}

    def build(self, source: str, nest: LoopNest, machine: Machine, folder: Path) -> Built:
        """Compiles every launch for the target, in a child process; refuses a source with more than
        kernels and their launches."""
        self.admit(source)
        return _compiler().build(source, nest, machine, folder)

    def compile_at(
        self, built: Built, nest: LoopNest, machine: Machine, every: Sequence[Sizes]
    ) -> None:
        """Compiles the launches for some sizes, if the target's GPU is here to run them, and loads them."""
        if not present(machine):
            _compiler().compile_at(built.file, nest, machine, every)
            _device().load(built, nest, machine, every)

    def draft(self, source: str, nest: LoopNest, machine: Machine, folder: Path) -> Built:
        """The same as `build` where the target's GPU runs it; elsewhere only writes the file, which is interpreted."""
        if not present(machine):
            return self.build(source, nest, machine, folder)
        self.admit(source)
        file = folder / f"kernel.{self.manifest.extension}"
        file.write_text(source, encoding="utf-8")
        return Built(file)

    def interface(self, machine: Machine) -> str:
        """The functions and rules of a source, in words."""
        return interface()

    def words(self) -> Collection[str]:
        """The identifiers that a source reserves for itself."""
        return WORDS

    def run(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> dict[str, np.ndarray]:
        """The outputs, in the dtypes of the spec."""
        if not present(machine):
            return _device().run(built, nest, machine, sizes, inputs)
        return _interpreter().interpret(built, nest, machine, sizes, inputs, next(self._orders))

    def time(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> Timing:
        """The time, measured on the target's GPU, else modelled. A build that spills is not modelled."""
        if not present(machine):
            return _device().time(built, nest, machine, sizes, inputs)
        return modelled_build(built, nest, machine, RULES, sizes)

    def open(self, machine: Machine) -> None:
        """Opens the target's GPU, if it is in this computer."""
        if not present(machine):
            _device().open_device()

    def leaves_inputs(self, machine: Machine) -> bool:
        """Whether kernels run on the target's GPU."""
        return not present(machine)

    def glance(
        self,
        built: Built,
        nest: LoopNest,
        machine: Machine,
        sizes: Sizes,
        inputs: Arrays,
        enough_us: float,
    ) -> float:
        """The approximate time of a call on the target's GPU, in microseconds."""
        return _device().glance(built, nest, machine, sizes, inputs, enough_us)

    def profile(
        self,
        built: Built,
        nest: LoopNest,
        machine: Machine,
        sizes: Sizes,
        inputs: Arrays,
        trace: Path,
    ) -> Timing:
        """The same as `time`, with a timeline of the launches."""
        if not present(machine):
            return _device().profile(built, nest, machine, sizes, inputs, trace)
        timing = modelled(nest, machine, RULES, sizes, built.figures)
        us = {launch.name: timing.figures[f"{launch.name}.us"] for launch in nest.launches}
        write_timeline(trace, (Bar(n, u, facts=facts_of(built, n)) for n, u in us.items()))
        return timing

    def guess(self, nest: LoopNest, machine: Machine, sizes: Sizes) -> float:
        """Microseconds by the time model for a nest without a build."""
        return self.model(nest, machine, sizes, {}).us

    def model(
        self, nest: LoopNest, machine: Machine, sizes: Sizes, figures: Mapping[str, float]
    ) -> Timing:
        """The time by the time model, with the figures of a build if there are any."""
        return modelled(nest, machine, RULES, sizes, figures)

    def enqueued(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes
    ) -> Callable[..., None]:
        """The function that enqueues all launches on GPU tensors in torch's stream."""
        return _device().tensor_launcher(built.file)

    def place(self, machine: Machine) -> str:
        """The torch device of the kernels' tensors: the target's GPU, else the CPU."""
        return "cpu" if present(machine) else DEVICE

    def launcher(
        self, file: Path, tensors: tuple[Parameter, ...], machine: Machine
    ) -> Callable[..., None]:
        """The function that runs a source on tensors on that device, by the GPU's queue or by the
        interpreter. All calls have contiguous tensors with the dtypes and shapes of `tensors`."""
        if present(machine):
            from backends.triton.interpret.launch import launcher  # needs torch

            return launcher(file, tensors, machine)
        return _device().tensor_launcher(file, alike=True)

    def repeats(self) -> str:
        """The text that makes launches again in a user's module."""
        return Path(__file__).parent.joinpath("build", "noted.py").read_text(encoding="utf-8")

    def warm(self, machine: Machine) -> None:
        """Loads the compiler, and the interpreter where it is used."""
        _compiler().warm(machine)
        if present(machine):
            _interpreter().warm()

    def static_figures(self, source: str) -> Mapping[str, float]:
        """The static features of the kernels in a text; see `ir.estimate.kernel_features`."""
        return static_figures(source)

    def available(self, machine: Machine) -> Mapping[str, Any]:
        """What this backend can do here: run and measure on the target's GPU, else interpret and model."""
        if lacking := present(machine):
            here = {"correct_by": "interpreter", "time_kind": "modelled", "why": lacking}
            return here | {"toolchain": f"triton {version('triton')}", "apart": True}
        return {
            "correct_by": "device",
            "time_kind": "measured",
            "why": "",
            "toolchain": ", ".join(f"{n} {v}" for n, v in _device().toolchain().items()),
            "device": device_names(machine)[0],
            "driver": driver(),
            "devices": nodes(),
            "memory": None,  # a driver reserves more addresses than there is memory
            "own_turns": True,
            "lasting": True,
            "apart": True,
        }


def present(machine: Machine) -> str:
    """Why the machine's GPU is not in this computer; empty where it is."""
    return _device().present(machine) if chips() else "there is no GPU here"


# Triton's compiler, torch and the interpreter take seconds to import. The search process, which
# emits sources and reads figures, needs none of them.


def _compiler() -> ModuleType:
    from backends.triton.build import compile as compiler

    return compiler


def _device() -> ModuleType:
    from backends.triton.device import device

    return device


def _interpreter() -> ModuleType:
    from backends.triton.interpret import interpreter

    return interpreter
