"""The backend of HIP C++: a source from a nest's thread program. Compiling needs no GPU."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np

from backends.backend import Arrays, BackendError, Built, Sizes
from backends.gpu.launched.backend import DeviceBackend, gpu_lacks
from backends.gpu.program import tile_program
from backends.gpu.source.interface import interface
from backends.gpu.source.launches import Call, calls, constants
from backends.gpu.source.names import NAMES, known_sizes
from backends.gpu.source.view import distinct, kernel_view
from backends.gpu.text import program_text as tile_text
from backends.gpu.threads.program import thread_program
from backends.gpu.threads.text import program_text as thread_text
from backends.gpu.threads.thread import ThreadProgram
from backends.hip import clang, driver, emulator
from backends.hip.admission import ADMISSION
from backends.hip.ahead import ahead_of_kernels
from backends.hip.bounds import waves_per_eu
from backends.hip.build import build, compiled, far, launches, tensor_bytes
from backends.hip.instructions import instructions
from backends.hip.interleave import interleaved
from backends.hip.launcher import program_files
from backends.hip.rules import RULES, WORDS
from backends.hip.spelling import MFMA, SCALED, templates
from backends.manifest import Manifest
from backends.parameters import parameters
from backends.shared.arrays import poisoned, results, to_device
from ir.machine import Machine
from ir.nest.nest import LoopNest, Store
from ir.sizes import bind, value
from machines.gpu.facts import device_names

HERE = Path(__file__).parent
MATRICES = f"""\
Matrix instructions of a wavefront of 64, `mfma_SHAPE(c0, .., a0, .., b0, ..)`: c += a * b, of M*N/64 \
registers of C by reference, M*K/64 elements of A and N*K/64 of B in each thread. Shapes, M x N x K: \
`{" ".join(sorted(MFMA))}`. `mfma_scaled_SHAPE` takes two scales of blocks besides, of A and of B: \
`{" ".join(sorted(SCALED))}`. A target has some of them for each dtype, as `instruction(.., shape=..)` \
says; which element a register holds is in the notes."""


class Hip(DeviceBackend):
    """Emits a file of kernels. An emulator runs their text, and their times are modelled."""

    rules = RULES
    driver = driver
    correct_by = "emulator"

    admit = staticmethod(ADMISSION.require)

    def __init__(self, manifest: Manifest):
        self.manifest = manifest
        self.templates = templates()

    def emit(self, nest: LoopNest, machine: Machine) -> str:
        """One file with a kernel for each launch."""
        held = (*self.manifest.dtypes, "tf32")  # tf32 is f32 in memory
        for p in parameters(nest):
            if p.dtype not in held:
                raise BackendError("emit", f"`{p.name}` is {p.dtype}; held here: {', '.join(held)}")
        own = spelled(nest)
        made, sizes = program(own, machine), bind(own.spec, dict(own.sizes))
        waves = {one.name: waves_per_eu(one, sizes, machine) for one in made.launches}
        return self.templates.render(
            "kernel.hip.j2",
            waves=waves,
            far=far(tensor_bytes(made), sizes),
            **kernel_view(nest.spec, own, made),
        )

    def levels(self, nest: LoopNest, machine: Machine) -> Mapping[str, str]:
        """The tile program and the thread program, with the source's names."""
        own = spelled(nest)
        tiles = tile_program(own, machine, RULES)
        return {"tile": tile_text(tiles), "thread": thread_text(program(own, machine))}

    def build(self, source: str, nest: LoopNest, machine: Machine, folder: Path) -> Built:
        """Compiles all launches in a child process. Refuses an inadmissible source."""
        self.admit(source)
        own = spelled(nest)
        stages = {one.name: max((v.stages for v in one.values), default=1) for one in own.launches}
        sizes = bind(own.spec, dict(own.sizes))
        return build(source, program(own, machine), stages, sizes, machine, folder)

    def interface(self, machine: Machine) -> str:
        """The functions and rules for a source."""
        headers = (HERE / "kernel.h", HERE / "matrices.h")
        return f"{interface(ADMISSION, headers, {}, HERE / 'notes')}\n\n{MATRICES}"

    def words(self) -> Collection[str]:
        """Reserved words, with which a kernel's names may clash."""
        return WORDS | NAMES.words

    def elsewhere(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> dict[str, np.ndarray]:
        """The outputs by the emulator, checked in both orders of work-items."""
        own = spelled(nest)
        known = known_sizes(nest, own, sizes)
        given = launches(built.file)
        made = tuple(calls(given, known))
        code = emulator.library(built.file, {c.name for c in made}, constants(given, known))
        bound = bind(nest.spec, sizes)
        found: list[dict[str, np.ndarray]] = []
        # Each order gets copies of them.
        tensors = {
            p.name: to_device(inputs[p.name], p.dtype) if p.role == "input" else poisoned(p, bound)
            for p in parameters(nest)
        }
        for reversed_order in emulator.ORDERS:
            with emulator.emulation(code, made, tensors) as emulation:
                for call in made:
                    emulation.launch(call, reversed_order)
                found.append(results(nest, emulation.buffers, inputs))
        return _same(nest, *found)

    def calls(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes
    ) -> tuple[Path, tuple[Call, ...]]:
        """The code object for some sizes, and its launches."""
        known = known_sizes(nest, spelled(nest), sizes)
        return compiled(built.file, machine, known), tuple(calls(launches(built.file), known))

    def warm(self, machine: Machine) -> None:
        """Compiles the shared parts of the emulator's kernels."""
        if clang.version():
            ahead_of_kernels()

    def present(self, machine: Machine) -> str:
        """Why the machine's GPU is not in this computer; empty if it is."""
        return present(machine)

    def exported(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes
    ) -> Mapping[str, str]:
        """A header and a HIP source with its included headers, for some sizes."""
        bound, arch = bind(nest.spec, sizes), machine.details["hip"]["arch"]
        at = ", ".join(f"{name} = {number}" for name, number in sizes.items())
        what = f"{nest.spec.name} at {at}, for {arch}."
        tensors = [(p, [value(e, bound) for e in p.shape]) for p in parameters(nest)]
        known = known_sizes(nest, spelled(nest), sizes)
        return program_files(nest.spec.name, what, tensors, built.file, known, arch)

    def compiler(self) -> tuple[str, str]:
        """The compiler's name and version; or an empty name, and the reason why it is missing."""
        missing = "there is no clang with AMD's device library; install ziglang and triton"
        return clang.version(), missing


def present(machine: Machine) -> str:
    """Why the machine's GPU is not in this computer; empty if it is."""
    return gpu_lacks("hip", machine.details["hip"]["arch"], device_names(machine))


def spelled(nest: LoopNest) -> LoopNest:
    """The nest with names that its source can contain."""
    return NAMES.spelled(nest, WORDS)


def program(nest: LoopNest, machine: Machine) -> ThreadProgram:
    """The thread program of a nest with its source's names."""
    return interleaved(distinct(thread_program(nest, machine, RULES, instructions(machine))))


def _same(
    nest: LoopNest, forward: dict[str, np.ndarray], back: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """The results, which must be equal in both orders unless a sum depends on the order of its
    atomic additions."""
    added = any(
        isinstance(s, Store) and s.reduction for la in nest.launches for s in la.statements()
    )
    for name, array in forward.items():
        if not added and array.tobytes() != back[name].tobytes():
            raise BackendError("check", f"`{name}` depends on the order in which work-items run")
    return back
