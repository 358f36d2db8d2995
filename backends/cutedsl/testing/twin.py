"""Runs a kernel's source on the CPU, thread by thread, without a compiler."""

from __future__ import annotations

from typing import Any

import numpy as np

from backends.backend import Arrays, Sizes
from backends.cutedsl.backend import CuteDsl
from backends.cutedsl.build import with_constants
from backends.cutedsl.spelling import templates
from backends.cutedsl.testing import samples
from backends.cutedsl.testing.boxes import TensorMap
from backends.cutedsl.testing.fakes import installed
from backends.cutedsl.testing.machine import Block, clustered
from backends.cutedsl.testing.machine import run as run_together
from backends.cutedsl.testing.memory import GMEM, Pointer
from backends.cutedsl.testing.numbers import NUMBERS, Int32
from backends.gpu.source.launches import Call, calls, constants, metadata
from backends.gpu.source.names import known_sizes
from backends.measure import compare, reference
from backends.parameters import parameters
from backends.shared.arrays import output, poisoned, to_device
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.sizes import bind

TYPES = {t.__name__: t for t in NUMBERS}


def run(
    backend: CuteDsl, source: str, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
) -> dict[str, np.ndarray]:
    """The outputs of a source at some sizes."""
    one, bound = backend.lowered(nest, machine), bind(nest.spec, sizes)
    known = known_sizes(nest, one.own, sizes)
    given = metadata(one.program)
    waiting = {launch.name for launch in one.program.launches if launch.shares}
    held = {
        p.name: to_device(inputs[p.name], p.dtype) if p.role == "input" else poisoned(p, bound)
        for p in parameters(nest)
    }
    types = templates().table("names.j2", "MEMORY")
    dtypes = [TYPES[types[p.dtype]] for p in one.program.tensors]
    memories = [np.ascontiguousarray(a).reshape(-1).view(np.uint8) for a in held.values()]
    pointers = [Pointer(m, 0, t, GMEM) for m, t in zip(memories, dtypes, strict=True)]
    with installed():
        kernels: dict[str, Any] = {}
        exec(compile(with_constants(source, constants(given, known)), "kernel.py", "exec"), kernels)
        for call in calls(given, known):
            _launch(kernels[call.name], call, pointers, call.name in waiting)
    for (name, array), memory in zip(list(held.items()), memories, strict=True):
        held[name] = memory.view(array.dtype).reshape(array.shape)
    return {t.name: output(t, held[t.name]) for t in nest.spec.outputs}


def _launch(kernel: Any, call: Call, pointers: list[Pointer], waiting: bool) -> None:
    """Runs the blocks of a launch: those of one cluster concurrently, or all blocks if blocks wait for each other."""
    arguments: list[Any] = [pointers[n] for n in call.tensors]
    arguments += [m and TensorMap(pointers[m.tensor], m) for m in call.maps]
    arguments += [Int32(n) for n in call.arguments]
    blocks = [Block(n, call.grid, call.block, call.shared) for n in range(call.grid)]
    clusters = [blocks[n : n + call.cluster] for n in range(0, call.grid, call.cluster)]
    for cluster in clusters:
        clustered(cluster)
    for group in [blocks] if waiting else reversed(clusters):
        run_together(group, lambda: kernel(*arguments))


def require_right(name: str, sizes: Sizes, source: str = "") -> None:
    """Raises BackendError if a sample's source does not give the reference's outputs."""
    own = samples.own_machine(name)
    backend, machine = samples.backend(), samples.machine_of(own, samples.FEW)
    nest = samples.nest_of(name, own, samples.FEW)
    known = reference(nest.spec, sizes, 7)
    source = source or backend.emit(nest, machine)
    for tensor, array in run(backend, source, nest, machine, sizes, known.inputs).items():
        compare(nest.spec, sizes, tensor, array, known)
