"""Running a source on the CPU: triton's interpreter, repaired, in a child that becomes one.

Triton decides at import whether functions are interpreted; here it was imported to compile. A
child makes the change afterwards for the functions of triton's own language, whose bodies are the
same, and loads the source anew.
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
from backends.triton.build.child import in_child
from backends.triton.build.module import launcher
from backends.triton.interpret import folds, libdevice, repairs
from backends.triton.interpret.guard import Guard, Region, Stray
from backends.triton.interpret.lockstep import same, trips, truth
from backends.triton.interpret.programs import Programs
from backends.triton.interpret.semantic import Semantic
from backends.triton.signature import parameters
from backends.triton.tensors import array, placed, poisoned
from ir.machine import Machine
from ir.nest.nest import LoopNest, Parameter
from ir.sizes import bind

SECONDS = 120.0
NAME = "triton"  # of the target file's table


def interpret(
    built: Built,
    nest: LoopNest,
    machine: Machine,
    sizes: Sizes,
    inputs: Arrays,
    order: int = 0,
) -> dict[str, np.ndarray]:
    """The outputs, in the dtypes of the spec, from tensors that were poisoned before.

    order: 0 takes a grid's programs as they are numbered, any other number is the seed of a
    permutation; a kernel whose programs race gives other bits. BackendError("check")
    for a fault of the kernel: what it raises, and any access outside its tensors.
    """

    def work() -> dict[str, np.ndarray]:
        return interpreted(built, nest, machine, sizes, inputs, order)

    warm()
    return in_child(work, SECONDS, "check", built.file.parent)


@cache
def warm() -> None:
    """Does once in this process what every child would do again: imports what triton imports
    when it first meets a number or a tensor, and looks for triton's own functions."""
    tl.str_to_ty(mangle_type(torch.empty(0)), None)
    _own()


def interpreted(
    built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays, order: int
) -> dict[str, np.ndarray]:
    """The same in this process, which is good for nothing else afterwards."""
    torch.set_num_threads(1)  # what ran in the parent left threads behind that are not here
    bound = bind(nest.spec, sizes)
    pairs = [
        (p, placed(inputs[p.name], p.dtype) if p.role == "input" else poisoned(p, bound))
        for p in parameters(nest)
    ]
    start(built.file, pairs, machine, order)
    return {p.name: array(t) for p, t in pairs if p.role == "output"}


def start(
    file: Path,
    pairs: Sequence[tuple[Parameter, torch.Tensor]],
    machine: Machine,
    order: int = 0,
) -> None:
    """Becomes an interpreter and runs a source's `launch` on tensors of the CPU, which may lie in
    one another's memory where both are inputs. BackendError("check") as of `interpret`."""
    regions = [Region(p.name, t.data_ptr(), t.nbytes, p.role != "input") for p, t in pairs]
    guard = Guard(regions, interpreter._interpreter)
    addresses = {t.data_ptr(): guard.address(p.name) for p, t in pairs}
    become(_builder(machine), guard, addresses, order)
    try:
        launcher(file, "check")(*(t for _, t in pairs))
    except Stray as error:
        raise BackendError("check", str(error)) from None


def become(
    builder: repairs.Builder, guard: Guard, addresses: Mapping[int, int], order: int
) -> None:
    """Makes this process interpret: what is jitted from now on, and triton's own functions."""
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
    """The operations, with the precisions of products that the target's compiler has."""
    table = machine.details[NAME]
    target = GPUTarget(table["backend"], table["arch"], table["wave"])
    options = make_backend(target).parse_options({})
    return repairs.Builder(
        options.default_dot_input_precision, options.allowed_dot_input_precisions
    )


def _rewrap() -> None:
    """Triton's own jitted functions become interpreted ones, each the same one everywhere."""
    for place, name, function in _own():
        setattr(place, name, _method(function) if place is tl.tensor else function)


@cache
def _own() -> list[tuple[Any, str, interpreter.InterpretedFunction]]:
    """Where triton's own jitted functions are, by which name, and what interprets them."""
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
    """Puts the interpreter's functions into triton's language, for good and once.

    Triton does so at each call of a function, which takes most of an interpreter's time.
    """
    scope = interpreter._LangPatchScope()
    interpreter._patch_lang(SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
    interpreter._patch_lang = lambda function: scope
    tl.tensor.__index__ = lambda self: int(same(self.handle.data))
    tl.tensor.__bool__ = truth
    tl.tensor.T = property(_turned)
    tl.tensor.__init__ = _made
    for place in (tl, tl.core):
        place.range = _range
    for name in ("reduce", "associative_scan"):
        for place in (tl, tl.core):
            setattr(place, name, getattr(folds, name))


def _range(first: Any, last: Any = None, step: Any = None, **hints: Any) -> Iterator[tl.tensor]:
    """`tl.range`: its index is a tensor, as on a device, where Python's would be a number."""
    low, high = (0, first) if last is None else (first, last)
    for at in trips(low, high, 1 if step is None else step):
        narrow = at.astype(np.int32)
        dtype = tl.int32 if (narrow == at).all() else tl.int64
        yield tl.tensor(repairs.Handle(narrow if dtype == tl.int32 else at, dtype), dtype)


def _made(self: tl.tensor, handle: Any, type: tl.dtype) -> None:
    """A tensor, as triton's own, which makes the constants of its shape each time anew."""
    self.handle, self.type, self.dtype = handle, type, type.scalar
    self.shape, self.numel = _constants(type.shape if type.is_block() else ())


@cache
def _constants(shape: tuple[int, ...]) -> tuple[tl.tuple, tl.constexpr]:
    return tl.tuple([tl.constexpr(n) for n in shape]), tl.constexpr(prod(shape))


def _turned(self: tl.tensor) -> tl.tensor:
    """A block whose last two axes are exchanged."""
    *rest, rows, columns = self.type.shape
    data = np.swapaxes(self.handle.data, -1, -2)
    kind = tl.block_type(self.dtype, [*rest, columns, rows])
    return tl.tensor(repairs.Handle(data, self.handle.dtype), kind)


def _call(self: interpreter.InterpretedFunction, *args: Any, **options: Any) -> Any:
    """A jitted function called by another one."""
    options.pop("_semantic", None)
    options.pop("_generator", None)
    return self.rewrite()(*args, **options)
