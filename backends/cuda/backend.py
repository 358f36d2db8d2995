"""The CUDA C++ backend: emits a source from a nest's thread program, and compiles it without a GPU."""

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
# Families of matrix instructions that kernel.h has functions for. Those of OF_ARCHITECTURE exist
# only in code for one architecture ("90a").
FAMILIES, OF_ARCHITECTURE = ("mma_sync", "mma_sync_f8"), ("wgmma",)


class Cuda(CubinBackend):
    """Emits one file of kernels, which NVRTC compiles."""

    rules = RULES
    language = LANGUAGE
    names, reserved = NAMES, WORDS
    admit = staticmethod(require_admissible)

    def __init__(self, manifest: Manifest):
        super().__init__(manifest)
        self.templates = templates()

    def interface(self, machine: Machine) -> str:
        """The functions and rules of a source, in words."""
        return interface(ADMISSION, (HERE / "kernel.h",), {"ptx": HERE / "ptx.h"}, HERE / "notes")

    def text(self, lowered: Lowered) -> str:
        """The source text of a thread program."""
        view = kernel_view(lowered.nest.spec, lowered.own, lowered.program)
        return self.templates.render("kernel.cu.j2", **view)

    def rows(self, machine: Machine) -> tuple[MatrixInstruction, ...]:
        """The matrix instructions that sources for a machine may use."""
        special = self.language.arch(machine).endswith("a")
        families = (*FAMILIES, *OF_ARCHITECTURE) if special else FAMILIES
        return tuple(i for i in of_machine(machine) if i.family in families)
