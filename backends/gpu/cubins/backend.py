"""The parts of a backend that spells thread programs and launches a cubin: on the target's own GPU
its kernels run and are timed; elsewhere the thread program is interpreted, and the time modelled."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from backends.backend import Arrays, BackendError, Built, Sizes
from backends.gpu.cubins import driver
from backends.gpu.launched.backend import DeviceBackend
from backends.gpu.program import tile_program
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
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.sizes import bind
from machines.gpu.facts import facts
from machines.gpu.matrix_instructions import MatrixInstruction


@dataclass(slots=True)
class Lowered:
    """A nest as a thread program, under the names that its source has."""

    nest: LoopNest
    machine: Machine
    own: LoopNest
    program: ThreadProgram
    source: str = ""  # once it is emitted


class CubinBackend(DeviceBackend):
    """What such backends do alike. Each adds its text, its compiler and its admission."""

    driver = driver
    correct_by = "interpreter"

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

    def elsewhere(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> dict[str, np.ndarray]:
        """The outputs by the interpreter of thread programs."""
        if built.file.read_text(encoding="utf-8") != self.emit(nest, machine):
            raise BackendError(
                "check",
                "an edited source runs on the target's GPU alone, which is not here: elsewhere the "
                "thread program is interpreted, which only an emitted source has",
            )
        return self._interpreted(nest, machine, sizes, inputs)

    def calls(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes
    ) -> tuple[Path, tuple[Call, ...]]:
        """The code for some sizes, and what is launched of it."""
        known = known_sizes(nest, self.spelled(nest), sizes)
        image = self.image(built, nest, machine, known)
        return image, tuple(calls(self.launches(built.file), known))

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
