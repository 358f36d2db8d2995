"""The view of a kernel for the template: its tile program and what surrounds it."""

from __future__ import annotations

from functools import partial
from typing import Any

from backends.backend import BackendError
from backends.gpu.program import TileProgram, sizes_of, tile_program
from backends.gpu.tile import expressions
from backends.triton.emit.names import spelled
from backends.triton.emit.spelling import by_library, helpers
from backends.triton.emit.wrapper import size_lines, wrapper_lines
from backends.triton.rules import RULES
from backends.triton.signature import size_sources
from ir.digest import spec_digest, text_digest
from ir.machine import Machine
from ir.nest.nest import LoopNest


def kernel_view(nest: LoopNest, machine: Machine) -> dict[str, Any]:
    """The values for the template `kernel.py.j2`. Raises BackendError where Triton cannot express the nest."""
    spec, nest = nest.spec, spelled(nest)
    program = tile_program(nest, machine, RULES)
    _require_describable(program)
    every = tuple(expressions(program.launches))
    made = tuple(p for p in program.tensors if p.role != "input")
    inputs = tuple(p.name for p in program.tensors if p.role == "input")
    return {
        "spec": nest.spec,
        "digests": {
            "spec": spec_digest(spec),
            "schedule": text_digest(str(nest.schedule)),
        },
        "program": program,
        "helpers": helpers(every),
        "libdevice": by_library(every),
        "inputs": inputs,
        "asked": tuple(n for n, tensor, *_ in size_sources(nest) if tensor not in inputs),
        "made": made,
        "parts": tuple(p.name for p in made if p.own),
        "launch_sizes": size_lines(nest, _launched(program)),
        "register_limit": partial(register_limit, machine),
        "wrapper": wrapper_lines(nest, sizes_of(*(p.shape for p in made if not p.own))),
    }


def register_limit(machine: Machine, limit: int) -> str:
    """The launch option that limits the registers of a thread. AMD's compiler takes the waves that
    a SIMD must hold instead."""
    if machine.details["triton"]["backend"] == "cuda":
        return f"maxnreg={limit}"
    return f"waves_per_eu={machine.details['gpu']['registers_per_thread'] // limit}"


def _require_describable(program: TileProgram) -> None:
    """Raises BackendError for bulk copies of booleans: Triton treats a boolean as 1 bit, so the
    rows of its descriptors would have 0 bytes."""
    dtypes = {p.name: p.dtype for p in program.tensors}
    for one in program.launches:
        for descriptor in one.descriptors:
            if dtypes[descriptor.tensor] == "b8":
                what = f"`{descriptor.tensor}` cannot be moved in bulk: it holds truth values"
                raise BackendError("emit", what)


def _launched(program: TileProgram) -> frozenset[str]:
    """The sizes that the launcher passes, or from which it computes something."""
    launches = program.launches
    passed = {s for one in launches for s in one.sizes}
    computed = [
        (one.tiles, tuple(value for _, value in one.constants), one.descriptors) for one in launches
    ]
    steps = [repeat.size for repeat, _ in program.groups if repeat]
    return sizes_of(*steps, *computed) | passed
