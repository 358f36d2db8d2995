"""The backend of CUDA C++: a source from a nest's thread program, compiled where no GPU need be."""

from __future__ import annotations

from pathlib import Path

from backends.cuda.admission import ADMISSION, require_admissible
from backends.cuda.build import LANGUAGE
from backends.cuda.rules import RULES, WORDS
from backends.cuda.spelling import templates
from backends.gpu.cubins.backend import CubinBackend, Lowered
from backends.gpu.source.interface import interface
from backends.gpu.source.names import NAMES
from backends.gpu.source.view import kernel_view
from backends.manifest import Manifest
from ir.machine import Machine
from machines.gpu.matrix_instructions import MatrixInstruction, of_machine

HERE = Path(__file__).parent
# Families of matrix instructions that kernel.h has functions for, those of one architecture last: these
# are only in code for it alone.
FAMILIES, OF_ARCHITECTURE = ("mma_sync", "mma_sync_f8"), ("wgmma",)


class Cuda(CubinBackend):
    """Emits a file of kernels, which NVRTC compiles."""

    rules = RULES
    language = LANGUAGE
    names, reserved = NAMES, WORDS
    admit = staticmethod(require_admissible)

    def __init__(self, manifest: Manifest):
        super().__init__(manifest)
        self.templates = templates()

    def interface(self, machine: Machine) -> str:
        """Functions and rules of a source."""
        return interface(ADMISSION, (HERE / "kernel.h",), {"ptx": HERE / "ptx.h"}, HERE / "notes")

    def text(self, lowered: Lowered) -> str:
        """The source of a thread program."""
        view = kernel_view(lowered.nest.spec, lowered.own, lowered.program)
        return self.templates.render("kernel.cu.j2", **view)

    def rows(self, machine: Machine) -> tuple[MatrixInstruction, ...]:
        """The matrix instructions that its sources may have."""
        special = self.language.arch(machine).endswith("a")
        families = (*FAMILIES, *OF_ARCHITECTURE) if special else FAMILIES
        return tuple(i for i in of_machine(machine) if i.family in families)
