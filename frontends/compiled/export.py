"""Exporting: a compiled module as libraries and a small loader, for computers without the project.

export(run, Path("folder"))

import sys; sys.path.append("folder")
from loader import load                     # backends/program/loader.py, copied
y = load("folder")(x)
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import treespec_dumps

from backends.backend import LoadsHere
from backends.program import loader
from backends.program.program import Program, step_buffers
from backends.program.sealed import seal
from backends.program.tensors import TORCH
from frontends.compiled.call import ModuleCall
from frontends.compiled.module import CompiledModule
from ir.errors import KernelError

LOADER = "loader.py"


def export(run: CompiledModule, folder: Path, overwrite: bool = False) -> None:
    """Writes a module with its parameters, its kernels as they were built, and a loader. overwrite:
    replaces a module that is there.

    KernelError for kernels of a device, and for a call that changes tensors, draws random numbers,
    calls PyTorch, or whose results have sizes that depend on data.
    """
    call = run.call
    _require_exported(call)
    with torch.no_grad():
        call.refresh()
        program = call.program
        kernels, files = _kernels(program)
        held, parts, at = {}, [], 0
        for name, tensor in call.fixed.items():
            raw = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
            held[name] = [at, len(raw)]
            parts.append(raw + bytes(-len(raw) % loader.ALIGNMENT))
            at += len(parts[-1])
    table = {
        "format": loader.FORMAT,
        "processor": loader.features(),
        "held": held,
        "kernels": kernels,
        **_program(program),
        **_signature(call, program),
    }
    files |= {
        loader.PROGRAM: json.dumps(table, indent=1).encode(),
        loader.TENSORS: b"".join(parts),
        LOADER: Path(loader.__file__).read_bytes(),
    }
    facts = {"name": run.linked.network.name, "target": run.linked.machine.name}
    seal(folder, files, facts, overwrite)


def _require_exported(call: ModuleCall) -> None:
    made, backend = call.made, call.linked.backend
    if not isinstance(backend, LoadsHere):
        raise KernelError(
            f"kernels of backend `{backend.manifest.name}` are no libraries of this computer",
            allowed="a target whose kernels run on the CPU",
            hint="save it: speciate.load needs the project, and no module",
        )
    faults = {
        "changes tensors": made.mutations,
        "draws random numbers": made.seed,
        f"leaves {', '.join(call.left_to_torch)} to PyTorch": made.external,
        "has results whose sizes depend on data": made.counts,
    }
    for fault, found in faults.items():
        if found:
            raise KernelError(f"the call {fault}, which a loader without the project cannot do")


def _kernels(program: Program) -> tuple[dict[str, Any], dict[str, bytes]]:
    """How kernels are called, by name, and their files."""
    table, files = {}, {}
    for spec in program.network.kernels():
        library = program.launchers[spec].library
        assert library is not None, "the backend loads libraries"
        name = f"kernels/{spec.name}.so"
        files[name] = library.file.read_bytes()
        table[spec.name] = {"library": name, "calls": library.calls}
    return table, files


def _program(program: Program) -> dict[str, Any]:
    steps = program.network.steps
    return {
        "workspace_bytes": program.plan.bytes,
        "workspace": dict(program.plan.offsets),
        "steps": [[step.spec.name, _buffers(program, n)] for n, step in enumerate(steps)],
        "outputs": [
            [b.name, str(TORCH[b.dtype]).removeprefix("torch."), list(b.shape)]
            for b in program.made
        ],
    }


def _buffers(program: Program, number: int) -> list[str]:
    """The tensors of a step, in the order in which its kernel takes them."""
    step = program.network.steps[number]
    return [name for _, name in step_buffers(number, step, program.launchers[step.spec])]


def _signature(call: ModuleCall, program: Program) -> dict[str, Any]:
    made = call.made
    tensors = {b.name: b for b in program.network.inputs}
    arguments = []
    for a in made.arguments:
        row: dict[str, Any] = {"name": None, "tensor": a.tensor, "value": a.value}
        if a.name in tensors:
            b = tensors[a.name]
            dtype = str(TORCH[b.dtype]).removeprefix("torch.")
            row |= {"name": a.name, "dtype": dtype, "shape": list(b.shape)}
        arguments.append(row)
    outputs = dict(zip((t.name for t in made.spec.outputs), program.network.outputs, strict=True))
    results: list[Any] = []
    for r in made.results:
        if r.kind == "output":
            buffer, sizes = outputs[r.key]
            results.append(["output", buffer, list(sizes)])
        elif r.kind == "argument":
            results.append(["argument", r.key])
        elif r.kind == "constant" and isinstance(r.key, bool | int | float | str | None):
            results.append(["constant", r.key])
        else:
            raise KernelError("a result is a parameter or a constant tensor, which is not exported")
    return {
        "arguments": arguments,
        "argument_structure": treespec_dumps(made.argument_structure),
        "structure": treespec_dumps(made.structure),
        "results": results,
    }
