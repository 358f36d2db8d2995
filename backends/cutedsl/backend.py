"""The backend of CuTe DSL: a source from a nest's thread program, compiled where no GPU need be."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from backends.backend import BackendError, Built
from backends.cutedsl import compiler
from backends.cutedsl.admission import require_admissible
from backends.cutedsl.build import build, compiled, launches
from backends.cutedsl.rules import NAMES, RULES, WORDS
from backends.cutedsl.spelling import promoted, templates
from backends.cutedsl.table import number
from backends.gpu.cubins.backend import CubinBackend, Lowered
from backends.gpu.launched.backend import gpu_lacks
from backends.gpu.source.view import distinct, kernel_view
from backends.gpu.threads.program import thread_program
from backends.gpu.threads.thread import ThreadProgram
from backends.manifest import Manifest
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.sizes import bind
from machines.gpu.facts import device_names
from machines.gpu.matrix_instructions import MatrixInstruction, of_machine

FAMILIES = ("mma_sync", "wgmma")  # of matrix instructions that kernel/ has functions for
OPERANDS = ("f16", "bf16", "tf32")


class CuteDsl(CubinBackend):
    """Emits a module of kernels, which CuTe DSL compiles."""

    rules = RULES

    admit = staticmethod(require_admissible)

    def __init__(self, manifest: Manifest):
        super().__init__(manifest)
        self.templates = templates()

    def text(self, lowered: Lowered) -> str:
        """The source of a thread program."""
        view = kernel_view(lowered.nest.spec, lowered.own, promoted(lowered.program))
        return self.templates.render("kernel.py.j2", **view)

    def emit(self, nest: LoopNest, machine: Machine) -> str:
        """One module with a kernel for each launch."""
        for dtype in (p.dtype for launch in nest.launches for p in launch.parameters):
            if dtype not in (*self.manifest.dtypes, "tf32"):  # which f32 becomes
                held = ", ".join(self.manifest.dtypes)
                raise BackendError(
                    "emit", f"tensors of {dtype} are not held here; these are: {held}"
                )
        return super().emit(nest, machine)

    def build(self, source: str, nest: LoopNest, machine: Machine, folder: Path) -> Built:
        """Compiles all launches, in a child; a source that is more than kernels is refused."""
        self.admit(source)
        if not compiler.version():
            raise BackendError("build", compiler.MISSING)
        one = self.lowered(nest, machine)
        sizes = bind(one.own.spec, dict(one.own.sizes))
        return build(source, one.program, sizes, machine, folder)

    def words(self) -> Collection[str]:
        """What no name of a text may be but the text's own."""
        return WORDS | NAMES.words

    def warm(self, machine: Machine) -> None:
        """Loads the compiler."""
        compiler.library(f"sm_{machine.details['cutedsl']['arch']}")

    def spelled(self, nest: LoopNest) -> LoopNest:
        """The nest under names that its source can hold."""
        return NAMES.spelled(nest, WORDS)

    def program(self, nest: LoopNest, machine: Machine) -> ThreadProgram:
        """The thread program of a nest with such names."""
        found = distinct(thread_program(nest, machine, RULES, self.rows(machine)))
        for launch in found.launches:
            if launch.cluster is not None or launch.end:
                raise BackendError("emit", f"`{launch.name}` has clusters of blocks: not here")
        return found

    def rows(self, machine: Machine) -> tuple[MatrixInstruction, ...]:
        """The matrix instructions that its sources may have."""
        every = of_machine(machine)
        return tuple(i for i in every if i.family in FAMILIES and i.a.dtype in OPERANDS)

    def image(
        self, built: Built, nest: LoopNest, machine: Machine, known: Mapping[str, int]
    ) -> Path:
        """The cubin of a built source for some sizes."""
        return compiled(built.file, machine, known)

    def launches(self, file: Path) -> dict[str, Any]:
        """What a built source is launched with."""
        return launches(file)

    def present(self, machine: Machine) -> str:
        """Why the machine's GPU is not in this computer; empty where it is."""
        return gpu_lacks("cuda", number(machine.details["cutedsl"]["arch"]), device_names(machine))

    def compiler(self) -> tuple[str, str]:
        """The compiler's name and version; or nothing, and why it is not here."""
        return compiler.version(), compiler.MISSING
