"""The backend of CUDA C++: a source from a nest's thread program, compiled where no GPU need be."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from backends.backend import Arrays, BackendError, Built, Sizes, Timing
from backends.cuda import driver, nvrtc
from backends.cuda.admission import require_admissible
from backends.cuda.build import build, compiled, launches
from backends.cuda.rules import RULES, WORDS
from backends.cuda.spelling import templates
from backends.cuda.table import number
from backends.gpu.device import running
from backends.gpu.device.gpu import DEVICE, nodes
from backends.gpu.model.model import modelled, modelled_build
from backends.gpu.program import tile_program
from backends.gpu.source.launches import Call, calls
from backends.gpu.source.names import NAMES, known_sizes
from backends.gpu.source.view import distinct, kernel_view
from backends.gpu.text import program_text as tile_text
from backends.gpu.threads.interpreter.faults import ThreadFault
from backends.gpu.threads.interpreter.interpret import interpret
from backends.gpu.threads.program import thread_program
from backends.gpu.threads.text import program_text as thread_text
from backends.gpu.threads.thread import ThreadProgram
from backends.manifest import Manifest
from backends.parameters import parameters
from backends.shared.arrays import from_device, poisoned, to_device
from backends.timeline import Bar, facts_of, write_timeline
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.sizes import bind
from machines.gpu.facts import device_names, facts
from machines.gpu.matrix_instructions import MatrixInstruction, of_machine

# Families of matrix instructions that kernel.h has functions for; the second only in code for one
# architecture alone.
FAMILY, OF_ARCHITECTURE = "mma_sync", "wgmma"


@dataclass(slots=True)
class Lowered:
    """A nest as a thread program, under the names that its source has."""

    nest: LoopNest
    machine: Machine
    own: LoopNest
    program: ThreadProgram
    source: str = ""  # once it is emitted


class Cuda:
    """Emits a file of kernels. On the target's own GPU they run and are timed there; elsewhere
    their thread program is interpreted, and their time is modelled."""

    def __init__(self, manifest: Manifest):
        self.manifest = manifest
        self.templates = templates()
        self._orders = itertools.count()  # each interpreted run takes the blocks in another order
        # The last nest, as a check runs it many times; another is lowered anew.
        self._last: Lowered | None = None

    def emit(self, nest: LoopNest, machine: Machine) -> str:
        """One file with a kernel for each launch."""
        one = self._lowered(nest, machine)
        if not one.source:
            view = kernel_view(nest.spec, one.own, one.program)
            one.source = self.templates.render("kernel.cu.j2", **view)
        return one.source

    def levels(self, nest: LoopNest, machine: Machine) -> Mapping[str, str]:
        """The tile program and the thread program, under the names that the source has."""
        one = self._lowered(nest, machine)
        tiles = tile_program(one.own, machine, RULES)
        return {"tile": tile_text(tiles), "thread": thread_text(one.program)}

    def build(self, source: str, nest: LoopNest, machine: Machine, folder: Path) -> Built:
        """Compiles all launches, in a child; a source that is more than kernels is refused."""
        require_admissible(source)
        one = self._lowered(nest, machine)
        sizes = bind(one.own.spec, dict(one.own.sizes))
        return build(source, one.program, sizes, machine, folder)

    def words(self) -> Collection[str]:
        """What no name of a text may be but the text's own."""
        return WORDS | NAMES.words

    def run(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> dict[str, np.ndarray]:
        """The outputs, in the dtypes of the spec."""
        if not present(machine):
            with running.faults("check"):
                launch = _launcher(built, nest, machine, sizes)
            return running.run(launch, nest, sizes, inputs)
        if built.file.read_text(encoding="utf-8") != self.emit(nest, machine):
            raise BackendError(
                "check",
                "an edited source runs on the target's GPU alone, which is not here: elsewhere the "
                "thread program is interpreted, which only an emitted source has",
            )
        return self._interpreted(nest, machine, sizes, inputs)

    def time(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> Timing:
        """Measured on the target's GPU, else modelled; a build that spills is not modelled."""
        if not present(machine):
            with running.faults("time"):
                launch = _launcher(built, nest, machine, sizes)
            return running.time(launch, nest, sizes, inputs)
        return modelled_build(built, nest, machine, RULES, sizes)

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
        timing = self.time(built, nest, machine, sizes, inputs)
        if present(machine):
            bars = [Bar(n.name, timing.figures[f"{n.name}.us"]) for n in nest.launches]
        else:
            with running.faults("time"):
                image, made = _calls(built, nest, machine, sizes)
                ready = [(call.name, driver.launcher(image, [call], _stream)) for call in made]
                bars = running.bars(ready, nest, sizes, inputs, timing.figures["host_us"])
        write_timeline(trace, (replace(b, facts=facts_of(built, b.name)) for b in bars))
        return timing

    def guess(self, nest: LoopNest, machine: Machine, sizes: Sizes) -> float:
        """Microseconds by the time model, of a nest that was not built."""
        return self.model(nest, machine, sizes, {}).us

    def model(
        self, nest: LoopNest, machine: Machine, sizes: Sizes, figures: Mapping[str, float]
    ) -> Timing:
        """By the time model, with the figures of a build where there are any."""
        return modelled(nest, machine, RULES, sizes, figures)

    def place(self, machine: Machine) -> str:
        """Where tensors for the kernels lie: on the target's GPU, else on the CPU."""
        return "cpu" if present(machine) else DEVICE

    def enqueued(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes
    ) -> Callable[..., None]:
        """What runs all launches on tensors on the GPU, in torch's stream."""
        return _launcher(built, nest, machine, sizes)

    def warm(self, machine: Machine) -> None:
        """Loads the compiler."""
        nvrtc.library()

    def available(self, machine: Machine) -> Mapping[str, Any]:
        """On the target's GPU everything on it; elsewhere interpreter and model."""
        version = nvrtc.version()
        if not version:
            why = "there is no NVRTC; install nvidia-cuda-nvrtc"
            return {"correct_by": None, "time_kind": None, "why": why}
        if lacking := present(machine):
            here = {"correct_by": "interpreter", "time_kind": "modelled", "why": lacking}
            return here | {"toolchain": version}
        return {
            "correct_by": "device",
            "time_kind": "measured",
            "why": "",
            "toolchain": f"{version}, torch {torch.__version__}",
            "device": device_names(machine)[0],
            "devices": nodes(),
            "memory": None,  # a driver reserves more addresses than there is memory
        }

    def _interpreted(
        self, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> dict[str, np.ndarray]:
        """The outputs of the nest's thread program, with its faults."""
        one, bound = self._lowered(nest, machine), bind(nest.spec, sizes)
        tensors = {
            p.name: to_device(inputs[p.name], p.dtype) if p.role == "input" else poisoned(p, bound)
            for p in parameters(nest)
        }
        held = dict(zip((p.name for p in one.program.tensors), tensors.values(), strict=True))
        limit, order = facts(machine)["shared_bytes_per_program"], next(self._orders)
        try:
            known = known_sizes(nest, one.own, sizes)
            interpret(one.program, known, held, _rows(machine), limit, order)
        except ThreadFault as fault:
            raise BackendError("check", str(fault)) from None
        return {t.name: from_device(tensors[t.name], t.dtype) for t in nest.spec.outputs}

    def _lowered(self, nest: LoopNest, machine: Machine) -> Lowered:
        last = self._last
        if last is None or last.nest is not nest or last.machine is not machine:
            own = spelled(nest)
            self._last = last = Lowered(nest, machine, own, _program(own, machine))
        return last


def present(machine: Machine) -> str:
    """Why the machine's GPU is not in this computer; empty where it is."""
    return _present(number(machine.details["cuda"]["arch"]), device_names(machine))


@cache
def _present(arch: int, names: tuple[str, ...]) -> str:
    if not torch.version.cuda:
        return "torch here is built for no GPU of NVIDIA"
    try:
        return running.looked_in_child(arch, names)
    except (BackendError, OSError, RuntimeError) as error:
        return f"the GPU does not answer: {error}"


def spelled(nest: LoopNest) -> LoopNest:
    """The nest under names that its source can hold."""
    return NAMES.spelled(nest, WORDS)


def _rows(machine: Machine) -> tuple[MatrixInstruction, ...]:
    special = str(machine.details["cuda"]["arch"]).endswith("a")
    families = (FAMILY, OF_ARCHITECTURE) if special else (FAMILY,)
    return tuple(i for i in of_machine(machine) if i.family in families)


def _program(nest: LoopNest, machine: Machine) -> ThreadProgram:
    return distinct(thread_program(nest, machine, RULES, _rows(machine)))


def _calls(
    built: Built, nest: LoopNest, machine: Machine, sizes: Sizes
) -> tuple[Path, tuple[Call, ...]]:
    """The code for some sizes, and what is launched of it."""
    known = known_sizes(nest, spelled(nest), sizes)
    image = compiled(built.file, machine, known)
    return image, tuple(calls(launches(built.file), known))


def _launcher(built: Built, nest: LoopNest, machine: Machine, sizes: Sizes) -> Callable[..., None]:
    """What enqueues all launches on the nest's tensors."""
    image, made = _calls(built, nest, machine, sizes)
    torch.cuda.init()
    torch.cuda.current_stream()  # makes the context that the code is loaded into
    return driver.launcher(image, made, _stream)


def _stream() -> int:
    """The handle of torch's stream."""
    return torch.cuda.current_stream().cuda_stream
