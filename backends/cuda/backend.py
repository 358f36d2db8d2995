"""The backend of CUDA C++: a source from a nest's thread program, compiled where no GPU need be."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from backends.backend import Built
from backends.cuda import nvrtc
from backends.cuda.admission import require_admissible
from backends.cuda.build import build, compiled, launches
from backends.cuda.rules import RULES, WORDS
from backends.cuda.spelling import templates
from backends.cuda.table import number
from backends.gpu.cubins.backend import CubinBackend, Lowered
from backends.gpu.launched.backend import gpu_lacks
from backends.gpu.source.names import NAMES
from backends.gpu.source.view import distinct, kernel_view
from backends.gpu.threads.program import thread_program
from backends.gpu.threads.thread import ThreadProgram
from backends.manifest import Manifest
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.sizes import bind
from machines.gpu.facts import device_names
from machines.gpu.matrix_instructions import MatrixInstruction, of_machine

# Families of matrix instructions that kernel.h has functions for; the second only in code for one
# architecture alone.
FAMILY, OF_ARCHITECTURE = "mma_sync", "wgmma"


class Cuda(CubinBackend):
    """Emits a file of kernels, which NVRTC compiles."""

    rules = RULES

    admit = staticmethod(require_admissible)

    def __init__(self, manifest: Manifest):
        super().__init__(manifest)
        self.templates = templates()

    def text(self, lowered: Lowered) -> str:
        """The source of a thread program."""
        view = kernel_view(lowered.nest.spec, lowered.own, lowered.program)
        return self.templates.render("kernel.cu.j2", **view)

    def build(self, source: str, nest: LoopNest, machine: Machine, folder: Path) -> Built:
        """Compiles all launches, in a child; a source that is more than kernels is refused."""
        self.admit(source)
        one = self.lowered(nest, machine)
        sizes = bind(one.own.spec, dict(one.own.sizes))
        return build(source, one.program, sizes, machine, folder)

    def words(self) -> Collection[str]:
        """What no name of a text may be but the text's own."""
        return WORDS | NAMES.words

    def warm(self, machine: Machine) -> None:
        """Loads the compiler."""
        nvrtc.library()

    def spelled(self, nest: LoopNest) -> LoopNest:
        """The nest under names that its source can hold."""
        return spelled(nest)

    def program(self, nest: LoopNest, machine: Machine) -> ThreadProgram:
        """The thread program of a nest with such names."""
        return _program(nest, machine)

    def rows(self, machine: Machine) -> tuple[MatrixInstruction, ...]:
        """The matrix instructions that its sources may have."""
        return _rows(machine)

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
        return present(machine)

    def compiler(self) -> tuple[str, str]:
        """The compiler's name and version; or nothing, and why it is not here."""
        return nvrtc.version(), "there is no NVRTC; install nvidia-cuda-nvrtc"


def present(machine: Machine) -> str:
    """Why the machine's GPU is not in this computer; empty where it is."""
    return gpu_lacks("cuda", number(machine.details["cuda"]["arch"]), device_names(machine))


def spelled(nest: LoopNest) -> LoopNest:
    """The nest under names that its source can hold."""
    return NAMES.spelled(nest, WORDS)


def _rows(machine: Machine) -> tuple[MatrixInstruction, ...]:
    special = str(machine.details["cuda"]["arch"]).endswith("a")
    families = (FAMILY, OF_ARCHITECTURE) if special else (FAMILY,)
    return tuple(i for i in of_machine(machine) if i.family in families)


def _program(nest: LoopNest, machine: Machine) -> ThreadProgram:
    return distinct(thread_program(nest, machine, RULES, _rows(machine)))
