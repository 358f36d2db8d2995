"""The CuTe DSL backend: emits a source from a nest's thread program, and compiles it without a GPU."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from backends.backend import BackendError
from backends.cutedsl.admission import require_admissible
from backends.cutedsl.build import LANGUAGE
from backends.cutedsl.interface import interface
from backends.cutedsl.rules import NAMES, RULES, WORDS
from backends.cutedsl.spelling import promoted, templates
from backends.gpu.cubins.backend import CubinBackend, Lowered
from backends.gpu.source.view import kernel_view
from backends.gpu.threads.thread import ThreadProgram
from backends.manifest import Manifest
from ir.machine import Machine
from ir.nest.nest import LoopNest
from machines.gpu.matrix_instructions import MatrixInstruction, of_machine

# Matrix instructions that kernel/ has functions for: their families, and their operand dtypes.
FAMILIES = ("mma_sync", "mma_sync_f8", "wgmma", "tcgen05")
OPERANDS = ("f16", "bf16", "tf32", "f8e4m3", "f8e5m2", "i8", "u8")


class CuteDsl(CubinBackend):
    """Emits one module of kernels, which CuTe DSL compiles."""

    rules = RULES
    language = LANGUAGE
    names, reserved = NAMES, WORDS
    admit = staticmethod(require_admissible)

    def __init__(self, manifest: Manifest):
        super().__init__(manifest)
        self.templates = templates()

    def interface(self, machine: Machine) -> str:
        """The functions and rules of a source, in words."""
        return interface()

    def text(self, lowered: Lowered) -> str:
        """The source text of a thread program."""
        view = kernel_view(lowered.nest.spec, lowered.own, promoted(lowered.program))
        return self.templates.render("kernel.py.j2", **view)

    def program(self, nest: LoopNest, machine: Machine) -> ThreadProgram:
        """The thread program of a nest, with launch names that CuTe DSL makes. BackendError for a
        tensor dtype that the backend lacks."""
        for dtype in (p.dtype for launch in nest.launches for p in launch.parameters):
            if dtype not in (*self.manifest.dtypes, "tf32"):  # f32 becomes tf32
                held = ", ".join(self.manifest.dtypes)
                raise BackendError(
                    "emit", f"tensors of {dtype} are not held here; these are: {held}"
                )
        return _numbered(super().program(nest, machine))

    def rows(self, machine: Machine) -> tuple[MatrixInstruction, ...]:
        """The matrix instructions that sources for a machine may use."""
        every = of_machine(machine)
        return tuple(i for i in every if i.family in FAMILIES and i.a.dtype in OPERANDS)


def _numbered(program: ThreadProgram) -> ThreadProgram:
    """The program with numbered launch names, because CuTe DSL ends each kernel's name with such a number."""
    numbers = count()
    return replace(
        program,
        groups=tuple(
            (
                repeat,
                tuple(replace(one, name=f"{program.name}_{next(numbers)}") for one in launches),
            )
            for repeat, launches in program.groups
        ),
    )
