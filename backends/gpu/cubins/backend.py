"""The parts of a backend that spells thread programs and launches a cubin: on the target's own GPU
its kernels run and are timed; elsewhere the thread program is interpreted, and the time modelled."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from backends.backend import Arrays, BackendError, Built, Sizes, Timing
from backends.gpu.cubins import driver
from backends.gpu.device import running
from backends.gpu.device.gpu import DEVICE, nodes
from backends.gpu.model.model import modelled, modelled_build
from backends.gpu.program import tile_program
from backends.gpu.rules import Rules
from backends.gpu.source.launches import Call, calls
from backends.gpu.source.names import known_sizes
from backends.gpu.text import program_text as tile_text
from backends.gpu.threads.interpreter.faults import ThreadFault
from backends.gpu.threads.interpreter.interpret import interpret
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
from machines.gpu.matrix_instructions import MatrixInstruction


@dataclass(slots=True)
class Lowered:
    """A nest as a thread program, under the names that its source has."""

    nest: LoopNest
    machine: Machine
    own: LoopNest
    program: ThreadProgram
    source: str = ""  # once it is emitted


class CubinBackend:
    """What such backends do alike. Each adds its text, its compiler and its admission."""

    rules: Rules

    def __init__(self, manifest: Manifest):
        self.manifest = manifest
        self._orders = itertools.count()  # each interpreted run takes the blocks in another order
        # The last nest, as a check runs it many times; another is lowered anew.
        self._last: Lowered | None = None

    # -- of each language ---------------------------------------------------------------------------

    def spelled(self, nest: LoopNest) -> LoopNest:
        """The nest under names that its source can hold."""
        raise NotImplementedError

    def program(self, nest: LoopNest, machine: Machine) -> ThreadProgram:
        """The thread program of a nest with such names."""
        raise NotImplementedError

    def text(self, lowered: Lowered) -> str:
        """The source of a thread program."""
        raise NotImplementedError

    def rows(self, machine: Machine) -> tuple[MatrixInstruction, ...]:
        """The matrix instructions that its sources may have."""
        raise NotImplementedError

    def image(
        self, built: Built, nest: LoopNest, machine: Machine, known: Mapping[str, int]
    ) -> Path:
        """The cubin of a built source for some sizes."""
        raise NotImplementedError

    def launches(self, file: Path) -> dict[str, Any]:
        """What a built source is launched with."""
        raise NotImplementedError

    def present(self, machine: Machine) -> str:
        """Why the machine's GPU is not in this computer; empty where it is."""
        raise NotImplementedError

    def compiler(self) -> tuple[str, str]:
        """The compiler's name and version; or nothing, and why it is not here."""
        raise NotImplementedError

    # -- of all -------------------------------------------------------------------------------------

    def emit(self, nest: LoopNest, machine: Machine) -> str:
        """One file with a kernel for each launch."""
        one = self.lowered(nest, machine)
        if not one.source:
            one.source = self.text(one)
        return one.source

    def levels(self, nest: LoopNest, machine: Machine) -> Mapping[str, str]:
        """The tile program and the thread program, under the names that the source has."""
        one = self.lowered(nest, machine)
        tiles = tile_program(one.own, machine, self.rules)
        return {"tile": tile_text(tiles), "thread": thread_text(one.program)}

    def run(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> dict[str, np.ndarray]:
        """The outputs, in the dtypes of the spec."""
        if not self.present(machine):
            with running.faults("check"):
                launch = self._launcher(built, nest, machine, sizes)
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
        if not self.present(machine):
            with running.faults("time"):
                launch = self._launcher(built, nest, machine, sizes)
            return running.time(launch, nest, sizes, inputs)
        return modelled_build(built, nest, machine, self.rules, sizes)

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
        if self.present(machine):
            bars = [Bar(n.name, timing.figures[f"{n.name}.us"]) for n in nest.launches]
        else:
            with running.faults("time"):
                image, made = self._calls(built, nest, machine, sizes)
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
        return modelled(nest, machine, self.rules, sizes, figures)

    def place(self, machine: Machine) -> str:
        """Where tensors for the kernels lie: on the target's GPU, else on the CPU."""
        return "cpu" if self.present(machine) else DEVICE

    def enqueued(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes
    ) -> Callable[..., None]:
        """What runs all launches on tensors on the GPU, in torch's stream."""
        return self._launcher(built, nest, machine, sizes)

    def available(self, machine: Machine) -> Mapping[str, Any]:
        """On the target's GPU everything on it; elsewhere interpreter and model."""
        version, why = self.compiler()
        if not version:
            return {"correct_by": None, "time_kind": None, "why": why}
        if lacking := self.present(machine):
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

    def lowered(self, nest: LoopNest, machine: Machine) -> Lowered:
        """A nest as a thread program."""
        last = self._last
        if last is None or last.nest is not nest or last.machine is not machine:
            own = self.spelled(nest)
            self._last = last = Lowered(nest, machine, own, self.program(own, machine))
        return last

    def _interpreted(
        self, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> dict[str, np.ndarray]:
        """The outputs of the nest's thread program, with its faults."""
        one, bound = self.lowered(nest, machine), bind(nest.spec, sizes)
        tensors = {
            p.name: to_device(inputs[p.name], p.dtype) if p.role == "input" else poisoned(p, bound)
            for p in parameters(nest)
        }
        held = dict(zip((p.name for p in one.program.tensors), tensors.values(), strict=True))
        limit, order = facts(machine)["shared_bytes_per_program"], next(self._orders)
        try:
            known = known_sizes(nest, one.own, sizes)
            interpret(one.program, known, held, self.rows(machine), limit, order)
        except ThreadFault as fault:
            raise BackendError("check", str(fault)) from None
        return {t.name: from_device(tensors[t.name], t.dtype) for t in nest.spec.outputs}

    def _calls(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes
    ) -> tuple[Path, tuple[Call, ...]]:
        """The code for some sizes, and what is launched of it."""
        known = known_sizes(nest, self.spelled(nest), sizes)
        image = self.image(built, nest, machine, known)
        return image, tuple(calls(self.launches(built.file), known))

    def _launcher(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes
    ) -> Callable[..., None]:
        """What enqueues all launches on the nest's tensors."""
        image, made = self._calls(built, nest, machine, sizes)
        torch.cuda.init()
        torch.cuda.current_stream()  # makes the context that the code is loaded into
        return driver.launcher(image, made, _stream)


@cache
def gpu_lacks(arch: int, names: tuple[str, ...]) -> str:
    """Why a GPU is not in this computer; empty where it is."""
    if not torch.version.cuda:
        return "torch here is built for no GPU of NVIDIA"
    try:
        return running.looked_in_child(arch, names)
    except (BackendError, OSError, RuntimeError) as error:
        return f"the GPU does not answer: {error}"


def _stream() -> int:
    """The handle of torch's stream."""
    return torch.cuda.current_stream().cuda_stream
