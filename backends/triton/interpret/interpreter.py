"""Runs a source on the CPU by Triton's interpreter, with repairs, in a child process.

Triton decides at import whether functions are interpreted, and this process imported it to compile.
A child process switches afterwards: it rewraps the functions of Triton's language, whose bodies are
the same in both modes, and loads the source again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import make_backend
from triton.runtime import interpreter
from triton.runtime.jit import JITFunction, mangle_type

from backends.backend import Arrays, BackendError, Built, Sizes
from backends.gpu.apart import apart
from backends.gpu.device.tensors import array, output, placed, poisoned
from backends.triton.build.module import launcher
from backends.triton.interpret import hints, libdevice, reductions, repairs
from backends.triton.interpret.guard import MemoryGuard, Region, Stray
from backends.triton.interpret.lockstep import iterations, same, truth
from backends.triton.interpret.programs import Programs
from backends.triton.interpret.semantic import Semantic
from backends.triton.signature import parameters
from backends.triton.table import table as table_of
from ir.machine import Machine
from ir.nest.nest import LoopNest, Parameter
from ir.sizes import bind

SECONDS = 120.0  # limit for one run


def interpret(
    built: Built,
    nest: LoopNest,
    machine: Machine,
    sizes: Sizes,
    inputs: Arrays,
    order: int = 0,
) -> dict[str, np.ndarray]:
    """The outputs in the dtypes of the spec; their memory is poisoned before the run.

    order: 0 runs the programs of a grid in numerical order, any other number is the seed of a
    permutation. If programs race, the results may differ.

    Raises BackendError("check") for a fault of the kernel: its exceptions, and any access outside
    of its tensors.
    """

    warm()
    source = built.file.read_text(encoding="utf-8")
    return apart(
        _interpreted,
        *(built.file.name, source, nest, machine, dict(sizes), dict(inputs), order),
        seconds=SECONDS,
        stage="check",
        folder=built.file.parent,
    )


def _interpreted(
    place: Path,
    name: str,
    source: str,
    nest: LoopNest,
    machine: Machine,
    sizes: Sizes,
    inputs: Arrays,
    order: int,
) -> dict[str, np.ndarray]:
    """`interpreted` for a source text."""
    file = place / name
    if not file.exists():
        file.write_text(source, encoding="utf-8")
    return interpreted(Built(file), nest, machine, sizes, inputs, order)


@cache
def warm() -> None:
    """Does once in this process what each child would repeat: imports that Triton postpones until
    it sees a number or a tensor, and the search for Triton's own functions."""
    tl.str_to_ty(mangle_type(torch.empty(0)), None)
    _own()


def interpreted(
    built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays, order: int
) -> dict[str, np.ndarray]:
    """`interpret` in this process, which is unusable for anything else afterwards."""
    torch.set_num_threads(1)  # torch's worker threads did not survive the fork
    bound = bind(nest.spec, sizes)
    pairs = [
        (p, placed(inputs[p.name], p.dtype) if p.role == "input" else poisoned(p, bound))
        for p in parameters(nest)
    ]
    start(built.file, pairs, machine, order)
    held = {p.name: t for p, t in pairs}
    return {t.name: array(output(t, held[t.name])) for t in nest.spec.outputs}


def start(
    file: Path,
    pairs: Sequence[tuple[Parameter, torch.Tensor]],
    machine: Machine,
    order: int = 0,
) -> None:
    """Makes this process an interpreter and runs a source's `launch` on CPU tensors. Inputs may
    share memory with each other. Raises BackendError("check") as in `interpret`."""
    regions = [Region(p.name, t.data_ptr(), t.nbytes, p.role != "input") for p, t in pairs]
    guard = MemoryGuard(regions, interpreter._interpreter)
    addresses = {t.data_ptr(): guard.address(p.name) for p, t in pairs}
    become(_builder(machine), guard, addresses, order)
    try:
        launcher(file, "check")(*(t for _, t in pairs))
    except Stray as error:
        raise BackendError("check", str(error)) from None


def become(
    builder: repairs.Builder, guard: MemoryGuard, addresses: Mapping[int, int], order: int
) -> None:
    """Makes this process interpret all functions that are jitted from now on, and Triton's own."""
    np.seterr(all="ignore")
    knobs.runtime.interpret = True
    interpreter._get_np_dtype = repairs.held_as
    interpreter._validate_np_data_size = lambda data, dtype: True
    semantic = Semantic(builder)
    interpreter.interpreter_builder = builder
    interpreter.interpreter_semantic = semantic
    interpreter._interpreter = guard
    _rewrap()
    _patch(builder)
    libdevice.install(semantic)
    programs = Programs(builder, semantic, guard, addresses, order)
    interpreter.InterpretedFunction.run = programs.run
    interpreter.InterpretedFunction.__call__ = _call


def _builder(machine: Machine) -> repairs.Builder:
    """The interpreter's operations, with the matmul precisions of the target's compiler."""
    table = table_of(machine)
    target = GPUTarget(table["backend"], table["arch"], table["warp"])
    options = make_backend(target).parse_options({})
    return repairs.Builder(
        options.default_dot_input_precision, options.allowed_dot_input_precisions
    )


def _rewrap() -> None:
    """Replaces Triton's own jitted functions by interpreted ones; each function has one
    replacement."""
    for place, name, function in _own():
        setattr(place, name, _method(function) if place is tl.tensor else function)


@cache
def _own() -> list[tuple[Any, str, interpreter.InterpretedFunction]]:
    """Where Triton's own jitted functions are, under which names, and what interprets them."""
    made: dict[int, interpreter.InterpretedFunction] = {}

    def interpreted(function: JITFunction) -> interpreter.InterpretedFunction:
        return made.setdefault(id(function), interpreter.InterpretedFunction(function.fn))

    places = [m for name, m in sys.modules.items() if name.startswith("triton.language")]
    return [
        (place, name, interpreted(member))
        for place in (*places, tl.tensor)
        for name, member in vars(place).items()
        if isinstance(member, JITFunction)
    ]


def _method(function: Callable) -> Callable:
    return lambda self, *args, **options: function(self, *args, **options)


def _patch(builder: repairs.Builder) -> None:
    """Installs the interpreter's functions in Triton's language, once and for good.

    Triton does so at each function call, which takes most of an interpreter's time.
    """
    scope = interpreter._LangPatchScope()
    interpreter._patch_lang(SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
    interpreter._patch_lang = lambda function: scope
    tl.tensor.__index__ = lambda self: int(same(self.handle.data))
    tl.tensor.__bool__ = truth
    tl.tensor.T = property(_transposed)
    tl.tensor.__init__ = _made
    for place in (tl, tl.core):
        place.range = _range
    for place in (tl, tl.core):
        for name in ("reduce", "associative_scan"):
            setattr(place, name, getattr(reductions, name))
        for name, hint in hints.HINTS.items():
            setattr(place, name, hint)


def _range(first: Any, last: Any = None, step: Any = None, **hints: Any) -> Iterator[tl.tensor]:
    """`tl.range` with a tensor as its index, as on a device; Python's would be an int."""
    low, high = (0, first) if last is None else (first, last)
    for at in iterations(low, high, 1 if step is None else step):
        narrow = at.astype(np.int32)
        dtype = tl.int32 if (narrow == at).all() else tl.int64
        yield tl.tensor(repairs.Handle(narrow if dtype == tl.int32 else at, dtype), dtype)


def _made(self: tl.tensor, handle: Any, type: tl.dtype) -> None:
    """Initialises a tensor as Triton does, with cached shape constants, which Triton makes anew
    each time."""
    self.handle, self.type, self.dtype = handle, type, type.scalar
    self.shape, self.numel = _constants(type.shape if type.is_block() else ())


@cache
def _constants(shape: tuple[int, ...]) -> tuple[tl.tuple, tl.constexpr]:
    return tl.tuple([tl.constexpr(n) for n in shape]), tl.constexpr(prod(shape))


def _transposed(self: tl.tensor) -> tl.tensor:
    """The transpose of a block's last two axes."""
    *rest, rows, columns = self.type.shape
    data = np.swapaxes(self.handle.data, -1, -2)
    kind = tl.block_type(self.dtype, [*rest, columns, rows])
    return tl.tensor(repairs.Handle(data, self.handle.dtype), kind)


def _call(self: interpreter.InterpretedFunction, *args: Any, **options: Any) -> Any:
    """A jitted function called from another one."""
    options.pop("_semantic", None)
    options.pop("_generator", None)
    return self.rewrite()(*args, **options)
