"""Runs emitted kernels on the CPU: g++ compiles the source, and each thread of a block is a fiber."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from backends.backend import Arrays, BackendError
from backends.cuda.build import HEADERS
from backends.gpu.source.launches import Map, calls, constants, metadata
from backends.gpu.source.names import known_sizes
from backends.parameters import parameters
from backends.registry import REGISTRY
from backends.shared.arrays import Fenced, output, poisoned, to_device
from backends.shared.precompiled import precompiled
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.sizes import bind

HERE = Path(__file__).parent
EMULATION = "emulation.h"
FLAGS = ("-std=c++20", "-O1", "-shared", "-fPIC", "-w", "-ffp-contract=off")


def machine_of(name: str) -> Machine:
    """The machine of a target, as this backend serves it."""
    return REGISTRY.served_by(REGISTRY.target(name), REGISTRY.backend("cuda"))


def emulated(
    source: str,
    nest: LoopNest,
    machine: Machine,
    sizes: Mapping[str, int],
    inputs: Arrays,
    folder: Path,
) -> dict[str, np.ndarray]:
    """The outputs of a source. BackendError where it writes outside a tensor."""
    cuda = REGISTRY.backend("cuda")
    own = cuda.spelled(nest)
    known = known_sizes(nest, own, sizes)
    given = metadata(cuda.program(own, machine))
    made = list(calls(given, known))
    library = _library(source, {c.name for c in made}, constants(given, known), folder)
    bound = bind(nest.spec, sizes)
    held = [
        Fenced(to_device(inputs[p.name], p.dtype) if p.role == "input" else poisoned(p, bound))
        for p in parameters(nest)
    ]
    for call in made:
        pointers = [ctypes.c_void_p(held[n].array.ctypes.data) for n in call.tensors]
        maps = [_map(m, held) for m in call.maps]
        values = (*pointers, *maps, *map(ctypes.c_int, call.arguments))
        arguments = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        together = call.grid if call.cooperative else call.cluster
        library[f"launch_{call.name}"](call.grid, call.block, together, arguments)
    tensors = {p.name: f for p, f in zip(parameters(nest), held, strict=True)}
    for name, fenced in tensors.items():
        if not fenced.whole():
            raise BackendError("check", f"the kernel writes outside `{name}`")
    return {t.name: output(t, tensors[t.name].array) for t in nest.spec.outputs}


def _map(given: Map | None, held: Sequence[Fenced]) -> Any:
    """The words of a tensor map, in the form that emulation.h reads."""
    words = (ctypes.c_uint64 * 16)()
    if given is not None:
        array = held[given.tensor].array
        sizes, box = given.sizes[::-1], given.box[::-1]
        words[:4] = array.ctypes.data, array.itemsize, len(sizes), given.swizzle
        words[4 : 4 + len(sizes)] = sizes
        words[9 : 9 + len(box)] = box
        words[15] = given.dtype == "tf32"
        words[14] = sum(step << 8 * n for n, step in enumerate(given.steps[::-1]))
    return words


def _library(source: str, names: set[str], set_to: Mapping[str, int], folder: Path) -> ctypes.CDLL:
    entries = "\n".join(
        f'extern "C" void launch_{n}(int grid, int block, int cluster, void** arguments) {{\n'
        f"  emulated::launch({n}, grid, block, cluster, arguments);\n}}"
        for n in sorted(names)
    )
    file = folder / "emulated.cc"
    file.write_text(f"{source}\n{entries}\n", encoding="utf-8")
    # Most of the compile time goes into this header
    ahead = precompiled("g++", FLAGS, (HERE,), EMULATION)
    options = [
        *FLAGS,
        *(f"-I{f}" for f in (*ahead, *(h.parent for h in HEADERS.values()))),
        "-include",
        EMULATION,
    ]
    options += [f"-D{n}={v}" for n, v in set_to.items()]
    number = len(list(folder.glob("*.so")))  # a library is loaded once for each path
    library = folder / f"emulated_{number}.so"
    done = subprocess.run(
        ["g++", *options, str(file), "-o", str(library)], capture_output=True, text=True
    )
    if done.returncode:
        raise BackendError("build", done.stderr[:3000])
    return ctypes.CDLL(str(library))
