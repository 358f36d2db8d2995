"""The backend of Triton: Python from a nest, compiled for a GPU that need not be there."""

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
    """Emits one importable file with kernels and launcher. On the target's own GPU, kernels run
    and are timed there; elsewhere they are interpreted, and their time is modelled."""

    admit = staticmethod(require_admissible)
    require_host = staticmethod(require_host)

    def __init__(self, manifest: Manifest):
        self.manifest = manifest
        self.templates = templates()
        # Each interpreted run takes its programs in another order, so that those that race give
        # other bits; what a kernel without races gives does not depend on it.
        self._orders = itertools.count()

    def emit(self, nest: LoopNest, machine: Machine) -> str:
        """One module: a jit function for each launch, `launch`, and a function of the kernel's
        name."""
        self.manifest.require_dtypes(nest, INNER)
        return self.templates.render("kernel.py.j2", **kernel_view(nest, machine))

    def levels(self, nest: LoopNest, machine: Machine) -> Mapping[str, str]:
        """The tile program, under the names that the source has."""
        return {"tile": program_text(tile_program(spelled(nest), machine, RULES))}

    def build(self, source: str, nest: LoopNest, machine: Machine, folder: Path) -> Built:
        """Compiles every launch for the target, in a child; a source that is more than kernels and
        their launches is refused."""
        self.admit(source)
        return _compiler().build(source, nest, machine, folder)

    def compile_at(
        self, built: Built, nest: LoopNest, machine: Machine, every: Sequence[Sizes]
    ) -> None:
        """Compiles the launches for some sizes, where the target's GPU runs them, and loads them there."""
        if not present(machine):
            _compiler().compile_at(built.file, nest, machine, every)
            _device().load(built, nest, machine, every)

    def draft(self, source: str, nest: LoopNest, machine: Machine, folder: Path) -> Built:
        """As `build` where the target's GPU runs it; elsewhere a file is all that is interpreted."""
        if not present(machine):
            return self.build(source, nest, machine, folder)
        self.admit(source)
        file = folder / f"kernel.{self.manifest.extension}"
        file.write_text(source, encoding="utf-8")
        return Built(file)

    def interface(self, machine: Machine) -> str:
        """Functions and rules of a source."""
        return interface()

    def words(self) -> Collection[str]:
        """What no name of a text may be but the text's own."""
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
        """Measured on the target's GPU, else modelled; a build that spills is not modelled."""
        if not present(machine):
            return _device().time(built, nest, machine, sizes, inputs)
        return modelled_build(built, nest, machine, RULES, sizes)

    def open(self, machine: Machine) -> None:
        """Opens the target's GPU, where it is here."""
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
        """About how long a call takes on the target's GPU."""
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
        """As `time`, with a timeline of the launches."""
        if not present(machine):
            return _device().profile(built, nest, machine, sizes, inputs, trace)
        timing = modelled(nest, machine, RULES, sizes, built.figures)
        us = {launch.name: timing.figures[f"{launch.name}.us"] for launch in nest.launches}
        write_timeline(trace, (Bar(n, u, facts=facts_of(built, n)) for n, u in us.items()))
        return timing

    def guess(self, nest: LoopNest, machine: Machine, sizes: Sizes) -> float:
        """Microseconds by the time model, of a nest that was not built: what it needs most."""
        return self.model(nest, machine, sizes, {}).us

    def model(
        self, nest: LoopNest, machine: Machine, sizes: Sizes, figures: Mapping[str, float]
    ) -> Timing:
        """By the time model, with the figures of a build where there are any."""
        return modelled(nest, machine, RULES, sizes, figures)

    def enqueued(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes
    ) -> Callable[..., None]:
        """What runs all launches on tensors on the GPU, in torch's stream."""
        return _device().tensor_launcher(built.file)

    def place(self, machine: Machine) -> str:
        """Where tensors for the kernels lie: on the target's GPU, else on the CPU."""
        return "cpu" if present(machine) else DEVICE

    def launcher(
        self, file: Path, tensors: tuple[Parameter, ...], machine: Machine
    ) -> Callable[..., None]:
        """What runs a source on tensors at that place: the GPU's queue, or the interpreter. All calls give
        contiguous tensors of the dtypes and shapes that `tensors` tell."""
        if present(machine):
            from backends.triton.interpret.launch import launcher  # needs torch

            return launcher(file, tensors, machine)
        return _device().tensor_launcher(file, alike=True)

    def warm(self, machine: Machine) -> None:
        """Loads what compiling needs, and what interpreting needs where that is done."""
        _compiler().warm(machine)
        if present(machine):
            _interpreter().warm()

    def static_figures(self, source: str) -> Mapping[str, float]:
        """What the kernels in a text show; see `ir.estimate.kernel_features`."""
        return static_figures(source)

    def available(self, machine: Machine) -> Mapping[str, Any]:
        """On the target's GPU everything on it; elsewhere interpreter and model."""
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


# Triton's compiler, torch and the interpreter take seconds to import. The process of a search, which
# emits sources and reads figures, uses none of them.


def _compiler() -> ModuleType:
    from backends.triton.build import compile as compiler

    return compiler


def _device() -> ModuleType:
    from backends.triton.device import device

    return device


def _interpreter() -> ModuleType:
    from backends.triton.interpret import interpreter

    return interpreter
