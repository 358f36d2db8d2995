"""The common part of backends that print thread programs and launch cubins. On the target's GPU
kernels run and are timed; elsewhere the thread program is interpreted, and the time is modelled."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from backends.backend import Arrays, BackendError, Built, Sizes
from backends.gpu.cubins import driver
from backends.gpu.cubins.build import Language, launches, sha256
from backends.gpu.cubins.c_text import c_files
from backends.gpu.launched.backend import DeviceBackend, gpu_lacks
from backends.gpu.names import SourceNames
from backends.gpu.program import tile_program
from backends.gpu.source.launches import Call, calls
from backends.gpu.source.names import known_sizes
from backends.gpu.source.view import distinct
from backends.gpu.text import program_text as tile_text
from backends.gpu.threads.interpreter.faults import ThreadFault
from backends.gpu.threads.interpreter.interpret import interpret
from backends.gpu.threads.program import thread_program
from backends.gpu.threads.text import program_text as thread_text
from backends.gpu.threads.thread import ThreadProgram
from backends.manifest import Manifest
from backends.parameters import parameters
from backends.shared.arrays import output, poisoned, to_device
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.sizes import bind, value
from machines.gpu.facts import device_names, facts
from machines.gpu.matrix_instructions import MatrixInstruction


@dataclass(slots=True)
class Lowered:
    """A nest as a thread program, under the names of its source."""

    nest: LoopNest
    machine: Machine
    own: LoopNest
    program: ThreadProgram
    source: str = ""  # empty until it is emitted


class CubinBackend(DeviceBackend):
    """A backend for cubins. Subclasses add the source text, the compiler and the admission check."""

    driver = driver
    correct_by = "interpreter"
    language: Language
    names: SourceNames
    # Names that a source cannot use for values, in addition to those derived from names
    reserved: frozenset[str]
    # Raises BackendError("build") where a source has more than kernels
    admit: Callable[[str], None]

    def __init__(self, manifest: Manifest):
        self.manifest = manifest
        self._orders = itertools.count()  # each interpreted run takes the blocks in another order
        # Caches the last nest, as a check runs it many times.
        self._last: Lowered | None = None

    # -- of each language ---------------------------------------------------------------------------

    def text(self, lowered: Lowered) -> str:
        """The source of a thread program."""
        raise NotImplementedError

    def rows(self, machine: Machine) -> tuple[MatrixInstruction, ...]:
        """The matrix instructions that its sources may use."""
        raise NotImplementedError

    # -- of all -------------------------------------------------------------------------------------

    def words(self) -> Collection[str]:
        """The identifiers that a source reserves for itself."""
        return self.reserved | self.names.words

    def spelled(self, nest: LoopNest) -> LoopNest:
        """The nest, renamed so that its source can hold it."""
        return self.names.spelled(nest, self.reserved)

    def program(self, nest: LoopNest, machine: Machine) -> ThreadProgram:
        """The thread program of a renamed nest."""
        return distinct(thread_program(nest, machine, self.rules, self.rows(machine)))

    def emit(self, nest: LoopNest, machine: Machine) -> str:
        """The source: one file with a kernel for each launch."""
        one = self.lowered(nest, machine)
        if not one.source:
            one.source = self.text(one)
        return one.source

    def build(self, source: str, nest: LoopNest, machine: Machine, folder: Path) -> Built:
        """Compiles all launches in a child process; refuses a source with more than kernels."""
        self.admit(source)
        one = self.lowered(nest, machine)
        sizes = bind(one.own.spec, dict(one.own.sizes))
        return self.language.build(source, one.program, sizes, machine, folder)

    def complete(
        self, built: Built, nest: LoopNest, machine: Machine, every: Sequence[Sizes]
    ) -> Mapping[str, str]:
        """Compiles the built source for further sizes. Returns the sha256 of each code object by file name."""
        images = self._images(built, nest, machine, every)
        return {image.name: sha256(image) for image in sorted(set(images))}

    def compile_at(
        self, built: Built, nest: LoopNest, machine: Machine, every: Sequence[Sizes]
    ) -> None:
        """Compiles the built source for some sizes, if the target's GPU is here to run it."""
        if not self.present(machine):
            self._images(built, nest, machine, every)

    def exported(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes
    ) -> Mapping[str, str]:
        """A header and a C file that launch the cubin for given sizes."""
        image, found = self.calls(built, nest, machine, sizes)
        bound = bind(nest.spec, sizes)
        at = ", ".join(f"{name} = {number}" for name, number in sizes.items())
        what = f"{nest.spec.name} at {at}: a cubin for {self.language.arch(machine)}, sha256 {sha256(image)}."
        tensors = [(p, [value(e, bound) for e in p.shape]) for p in parameters(nest)]
        return c_files(nest.spec.name, what, tensors, found, image.read_bytes())

    def available(self, machine: Machine) -> Mapping[str, Any]:
        """As for every device; compilers run in a separate process."""
        return {**super().available(machine), "apart": True}

    def warm(self, machine: Machine) -> None:
        """Loads the compiler."""
        self.language.load(self.language.arch(machine))

    def present(self, machine: Machine) -> str:
        """Why the machine's GPU is not in this computer; empty where it is."""
        return gpu_lacks("cuda", self.language.number(machine), device_names(machine))

    def compiler(self) -> tuple[str, str]:
        """The compiler's name and version; or empty, and why it is missing."""
        return self.language.version(), self.language.missing

    def levels(self, nest: LoopNest, machine: Machine) -> Mapping[str, str]:
        """The texts of the tile program and the thread program, under the names of the source."""
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
        """The code object for given sizes, and its launches."""
        known = known_sizes(nest, self.spelled(nest), sizes)
        image = self.language.image(built.file, machine, known)
        return image, tuple(calls(launches(built.file), known))

    def _images(
        self, built: Built, nest: LoopNest, machine: Machine, every: Sequence[Sizes]
    ) -> list[Path]:
        """The code objects for each of some sizes."""
        own = self.spelled(nest)
        known = [known_sizes(nest, own, sizes) for sizes in every]
        return self.language.images(built.file, machine, known)

    def lowered(self, nest: LoopNest, machine: Machine) -> Lowered:
        """The thread program of a nest, with its names."""
        last = self._last
        if last is None or last.nest is not nest or last.machine is not machine:
            own = self.spelled(nest)
            self._last = last = Lowered(nest, machine, own, self.program(own, machine))
        return last

    def _interpreted(
        self, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> dict[str, np.ndarray]:
        """The outputs of the nest's thread program; raises its faults."""
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
        return {t.name: output(t, tensors[t.name]) for t in nest.spec.outputs}
