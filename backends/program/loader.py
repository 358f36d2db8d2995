"""Runs a module that was exported for the processor of a computer.

    from loader import load
    run = load("folder")
    y = run(x)                      # called as the module was

This file is copied beside what is exported, as it is. It needs Python and PyTorch, and nothing else
of the project that wrote it.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten, treespec_loads

PROGRAM, TENSORS = "program.json", "tensors.bin"
FORMAT = 1
ALIGNMENT = 256  # bytes of a tensor in a file or in the workspace
LibraryCall = tuple[str, Sequence[int], Sequence[int]]  # function, numbers of tensors, sizes


class ExportError(RuntimeError):
    """What is exported does not run here, or is called with other arguments."""


class _Args(ctypes.Structure):  # of a launch, as sources include it
    _fields_ = (
        ("tensors", ctypes.POINTER(ctypes.c_void_p)),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("threads", ctypes.c_int64),
    )


def launch_function(
    library: Path, calls: Sequence[LibraryCall], threads: int
) -> Callable[[Sequence[int]], None]:
    """What makes some calls of a library on tensors, whose addresses it is given in order. OSError
    where the library cannot be loaded, AttributeError where it lacks a function."""
    loaded = ctypes.CDLL(str(library))
    found = []
    for name, tensors, sizes in calls:
        function = getattr(loaded, name)
        function.restype, function.argtypes = None, [ctypes.POINTER(_Args)]
        numbers = (ctypes.c_int64 * len(sizes))(*sizes)
        found.append((function, tuple(tensors), numbers, ctypes.c_void_p * len(tensors)))

    def launch(addresses: Sequence[int]) -> None:
        for function, tensors, numbers, array in found:
            pointers = array(*(addresses[n] for n in tensors))
            function(_Args(pointers, numbers, threads))

    return launch


def features() -> dict[str, Any]:
    """What code for this processor may use."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    flags = (line.partition(":")[2].split() for line in lines if line.startswith(("flags", "Feat")))
    return {"machine": platform.machine(), "flags": sorted(next(flags, []))}


class Exported:
    """A module's call by kernels of a folder. Two calls must not run at a time."""

    def __init__(self, folder: Path):
        table = json.loads((folder / PROGRAM).read_text(encoding="utf-8"))
        if table.get("format") != FORMAT:
            raise ExportError(f"the format is {table.get('format')}, not {FORMAT}")
        _require_processor(table["processor"])
        self.table = table
        self.structure = treespec_loads(table["argument_structure"])
        self.results = treespec_loads(table["structure"])
        self.memory = torch.empty(table["workspace_bytes"] + ALIGNMENT, dtype=torch.uint8)
        self.workspace = -(-self.memory.data_ptr() // ALIGNMENT) * ALIGNMENT
        raw = (folder / TENSORS).read_bytes()
        self.held = {
            name: torch.frombuffer(bytearray(raw[at : at + size]), dtype=torch.uint8)
            for name, (at, size) in table["held"].items()
        }
        self.fresh = {name for name, _, _ in table["outputs"]}
        threads = len(os.sched_getaffinity(0))
        libraries = {
            name: launch_function(folder / kernel["library"], kernel["calls"], threads)
            for name, kernel in table["kernels"].items()
        }
        self.steps = [(libraries[name], buffers) for name, buffers in table["steps"]]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the module's call returns, in its structure."""
        leaves, structure = tree_flatten((args, kwargs))
        if structure != self.structure:
            raise ExportError(f"the arguments are {structure}, and not {self.structure}")
        held = dict(self.held)
        for number, (leaf, wanted) in enumerate(zip(leaves, self.table["arguments"], strict=True)):
            name = wanted["name"]
            if not wanted["tensor"]:
                if type(leaf) is not type(wanted["value"]) or leaf != wanted["value"]:
                    raise ExportError(f"argument {number} is {leaf!r}, not {wanted['value']!r}")
            elif name is not None:
                held[name] = _checked(leaf, number, wanted)
        for name, dtype, shape in self.table["outputs"]:
            held[name] = torch.empty(shape, dtype=getattr(torch, dtype))
        addresses = {name: tensor.data_ptr() for name, tensor in held.items()}
        for name, offset in self.table["workspace"].items():
            addresses[name] = self.workspace + offset
        for launch, buffers in self.steps:
            launch([addresses[name] for name in buffers])
        return tree_unflatten(
            [self._result(r, held, leaves) for r in self.table["results"]], self.results
        )

    def _result(self, result: Any, held: dict[str, torch.Tensor], leaves: list[Any]) -> Any:
        kind, key = result[0], result[1]
        if kind == "output":
            found = held[key].view(result[2])
            return found if key in self.fresh else found.clone()
        return leaves[key] if kind == "argument" else key


def _require_processor(wanted: dict[str, Any]) -> None:
    here = features()
    if here["machine"] != wanted["machine"]:
        raise ExportError(f"it is for {wanted['machine']}, and this is {here['machine']}")
    if lacking := sorted(set(wanted["flags"]) - set(here["flags"])):
        raise ExportError(f"it is for a processor with {', '.join(lacking)}; export it on this one")


def _checked(leaf: Any, number: int, wanted: dict[str, Any]) -> torch.Tensor:
    dtype, shape = getattr(torch, wanted["dtype"]), list(wanted["shape"])
    if not isinstance(leaf, torch.Tensor) or leaf.dtype != dtype or list(leaf.shape) != shape:
        said = f"{leaf.dtype}{list(leaf.shape)}" if isinstance(leaf, torch.Tensor) else repr(leaf)
        raise ExportError(f"argument {number} is {said}, not {dtype}{shape}")
    if leaf.device.type != "cpu":
        raise ExportError(f"argument {number} is on {leaf.device}, not on the CPU")
    return leaf.detach().contiguous().resolve_neg()


def load(folder: str | Path) -> Exported:
    """The module that was exported to a folder; ExportError where it is for another processor."""
    return Exported(Path(folder))
