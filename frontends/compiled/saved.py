"""A saved module: its network and kernels, how it is called, and its tensors, in a folder.

    save(run, Path("folder"))
    run = load(Path("folder"))

Loading runs no code of the module's, imports nothing of PyTorch's export, and schedules nothing.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import TreeSpec, treespec_dumps, treespec_loads

from backends.program.linked import Contents
from backends.program.saved import saved_network
from backends.program.sealed import Sealed, seal, unseal
from backends.program.tensors import TORCH
from frontends.compiled.call import known
from frontends.compiled.module import CompiledModule
from frontends.pytorch.external import names_of
from frontends.pytorch.imported import (
    ArgumentLeaf,
    External,
    Held,
    Imported,
    Mutation,
    Operand,
    ResultLeaf,
)
from ir.errors import KernelError
from ir.spec import Number, Spec, Tensor

CALL, TENSORS = "call.json", "tensors.bin"
LEFT = "left_to_torch"  # the manifest's fact: the operators that PyTorch computes
_PLAIN = (type(None), bool, int, float, str)
_KINDS = (torch.dtype, torch.layout, torch.memory_format)
_NAMES = {torch_dtype: name for name, torch_dtype in TORCH.items() if name != "tf32"}


def save(run: CompiledModule, folder: Path, state: bool = True, overwrite: bool = False) -> None:
    """Writes a compiled module. state: whether its parameters and buffers are written too; without
    them `load` needs them as an argument. overwrite: whether to replace a module that is there.
    KernelError for a folder that is something else, and for a call that cannot be written."""
    write(run.made, run.linked.contents(), folder, run.state if state else {}, overwrite)


def write(
    made: Imported,
    contents: Contents,
    folder: Path,
    state: Mapping[str, torch.Tensor],
    overwrite: bool = False,
) -> None:
    """Writes an import and its network, whose kernels need not be built."""
    seal(folder, *_files(made, contents, state), overwrite)


def _files(
    made: Imported, contents: Contents, state: Mapping[str, torch.Tensor]
) -> tuple[dict[str, bytes], dict[str, Any]]:
    """The files of a module by name, and the facts of its manifest."""
    written = _Tensors()
    held = {path: written.put(t) for path, t in state.items()}
    constants = {name: known(t) for name, t in made.constants.items()}
    parameters = [path for path, t in state.items() if isinstance(t, torch.nn.Parameter)]
    call = _call(made, constants, written) | {"state": held, "parameters": parameters}
    files = {
        **contents.files,
        CALL: json.dumps(call, indent=1).encode(),
        TENSORS: b"".join(written.parts),
    }
    return files, {**contents.facts, LEFT: list(names_of(made))}


def packed(run: CompiledModule) -> tuple[dict[str, bytes], dict[str, Any]]:
    """All that `save` would write, for `unpacked`."""
    return _files(run.made, run.linked.contents(), run.state)


def unpacked(
    files: tuple[dict[str, bytes], dict[str, Any]], seed: int, reuse: bool, graph: bool
) -> CompiledModule:
    """What was packed, as `load` gives it."""
    with tempfile.TemporaryDirectory(prefix="packed-") as folder:
        place = Path(folder) / "module"
        seal(place, *files)
        return load(place, seed=seed, reuse=reuse, graph=graph)


def call_of(sealed: Sealed) -> tuple[Imported, dict[str, torch.Tensor]]:
    """The saved call, and the saved tensors by path; KernelError where there is no call.

    Its spec has outputs only.
    """
    memory = sealed.bytes(TENSORS)
    try:
        call = sealed.table(CALL)
        held = {path: _tensor(where, memory) for path, where in call["state"].items()}
        for path in call.get("parameters", ()):  # what was saved before does not name them
            held[path] = torch.nn.Parameter(held[path], requires_grad=False)
        return _imported(call, memory), held
    except NotImplementedError as error:
        raise KernelError(
            f"an argument or result is of a class that is not registered here: {error}",
            where=str(sealed.folder / CALL),
            hint="import the module that registers it",
        ) from error
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise KernelError(
            f"it tells no call: {type(error).__name__} {error}", where=str(sealed.folder / CALL)
        ) from error


def load(
    folder: Path,
    state: Mapping[str, torch.Tensor] | None = None,
    seed: int = 0,
    reuse: bool = False,
    graph: bool = False,
) -> CompiledModule:
    """What `save` wrote, as a module's call on the target's device here.

    state: parameters and buffers by path, as of `module.state_dict()`, which are used as they lie;
    else the saved ones. seed, reuse, graph: see `CompiledModule`. KernelError for a folder
    that is incomplete, changed or of another form.
    """
    sealed = unseal(folder)
    network = saved_network(sealed)
    made, held = call_of(sealed)
    given = held if state is None else dict(state)
    placed = {path: _at(t, network.place) for path, t in given.items()}
    return CompiledModule(made, network, placed, seed, reuse, graph)


def _at(tensor: torch.Tensor, place: str) -> torch.Tensor:
    """A tensor on a device: itself, or a copy that is a parameter where it is one."""
    moved = tensor.to(place)
    parameter = isinstance(tensor, torch.nn.Parameter) and moved is not tensor
    return torch.nn.Parameter(moved, requires_grad=False) if parameter else moved


class _Tensors:
    """Tensors on their way into one file. parts: their bytes."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.length = 0

    def put(self, tensor: torch.Tensor) -> list[Any]:
        """Where a tensor is written: dtype, shape, first byte."""
        there = tensor.detach().cpu().contiguous()
        raw = there.reshape(-1).view(torch.uint8).numpy().tobytes()
        found = [_NAMES[there.dtype], list(there.shape), self.length]
        self.parts.append(raw)
        self.length += len(raw)
        return found


def _tensor(where: list[Any], memory: bytes) -> torch.Tensor:
    dtype, shape, at = where
    empty = torch.empty(shape, dtype=TORCH[dtype])
    raw = memory[at : at + empty.nbytes]
    if len(raw) != empty.nbytes:
        raise ValueError("a tensor is not in the file")
    if raw:
        flat = torch.frombuffer(bytearray(raw), dtype=torch.uint8)
        empty.reshape(-1).view(torch.uint8).copy_(flat)
    return empty


def _call(
    made: Imported, constants: Mapping[str, torch.Tensor], written: _Tensors
) -> dict[str, Any]:
    return {
        "arguments": [[a.name, a.tensor, _plain(a.value)] for a in made.arguments],
        "argument_structure": _structure(made.argument_structure),
        "held": [[h.name, h.path] for h in made.held],
        "constants": {name: written.put(t) for name, t in constants.items()},
        "seed": made.seed,
        "training": made.training,
        "outputs": [[t.name, t.dtype, [s.value for s in t.shape]] for t in made.spec.outputs],
        "results": [_result(r, written) for r in made.results],
        "structure": _structure(made.structure),
        "mutations": [[m.target, _result(m.result, written)] for m in made.mutations],
        "counts": {name: [count, dim] for name, (count, dim) in made.counts.items()},
        "external": [
            [
                f.operator,
                _written(f.args),
                {n: _written(v) for n, v in f.kwargs.items()},
                list(f.outputs),
            ]
            for f in made.external
        ],
    }


def _structure(structure: TreeSpec) -> str:
    """A structure of arguments or results as text; KernelError where it cannot be read again."""
    try:
        text = treespec_dumps(structure)
        if treespec_loads(text) != structure:
            raise ValueError(f"{structure} is read as {treespec_loads(text)}")
        return text
    except (NotImplementedError, TypeError, ValueError) as error:
        raise KernelError(
            f"a saved module cannot hold the class of an argument or result: {error}",
            allowed="tuples, lists, dicts, and classes registered with `serialized_type_name`",
            hint="torch.utils._pytree.register_pytree_node(..., serialized_type_name='NAME'); "
            "torch.utils._pytree._register_namedtuple for a named tuple",
        ) from error


def _written(item: Any) -> Any:
    """An argument of an external call as JSON: a list as it is, a leaf with its sort."""
    if isinstance(item, list | tuple):
        return [_written(one) for one in item]
    if isinstance(item, Operand):
        return {"tensor": item.name}
    if isinstance(item, torch.device):
        return {"torch": "device"}  # the program's own, wherever that is
    if isinstance(item, _KINDS):
        return {"torch": str(item).removeprefix("torch.")}
    return {"value": _plain(item)}


def _read(item: Any) -> Any:
    """What `_written` wrote; ValueError for anything else."""
    if isinstance(item, list):
        return [_read(one) for one in item]
    match item:
        case {"tensor": str(name)}:
            return Operand(name)
        case {"torch": "device"}:
            return torch.device("cpu")
        case {"torch": str(name)} if isinstance(getattr(torch, name, None), _KINDS):
            return getattr(torch, name)
        case {"value": value}:
            return value
    raise ValueError(f"{item} is no argument")


def _plain(value: Any) -> Any:
    if not isinstance(value, _PLAIN):
        raise KernelError(
            f"an argument or result is {value!r}, which a saved module cannot hold",
            allowed="tensors, numbers, texts, None",
        )
    return value


def _result(result: ResultLeaf, written: _Tensors) -> list[Any]:
    if result.kind == "constant" and isinstance(result.key, torch.Tensor):
        return ["tensor", written.put(result.key)]
    return [result.kind, _plain(result.key)]


def _imported(call: Mapping[str, Any], memory: bytes) -> Imported:
    def result(row: list[Any]) -> ResultLeaf:
        kind, key = row
        return (
            ResultLeaf("constant", _tensor(key, memory))
            if kind == "tensor"
            else ResultLeaf(kind, key)
        )

    outputs = tuple(Tensor(n, d, tuple(map(Number, s))) for n, d, s in call["outputs"])
    return Imported(
        Spec("call", "call", (), outputs, ()),
        {},
        tuple(ArgumentLeaf(*row) for row in call["arguments"]),
        treespec_loads(call["argument_structure"]),
        tuple(Held(*row) for row in call["held"]),
        {name: _tensor(where, memory) for name, where in call["constants"].items()},
        call["seed"],
        tuple(map(result, call["results"])),
        treespec_loads(call["structure"]),
        tuple(Mutation(target, result(row)) for target, row in call["mutations"]),
        {name: (count, dim) for name, (count, dim) in call["counts"].items()},
        external=tuple(
            External(
                operator,
                tuple(map(_read, args)),
                {n: _read(v) for n, v in kwargs.items()},
                tuple(made),
            )
            for operator, args, kwargs, made in call["external"]
        ),
        training=call.get("training", False),  # what was saved before does not say it
    )
