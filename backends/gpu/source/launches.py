"""Launches as data: grid, block, shared memory, arguments and constants of each launch, as integer
expressions over sizes in text form. So whoever judges a kernel runs none of its host code.

    {"name": "rows_0", "grid": "M", "block": 128, "shared": "0", "tensors": ["x", "y"],
     "arguments": ["M", "K"], "constants": {"K_WIDTH": "cdiv(K, 512) * 512"}}
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from backends.backend import BackendError
from backends.gpu import tile as of
from backends.gpu.source.layouts import Padded
from backends.gpu.source.names import constant_name
from backends.gpu.source.view import ALIGNED, regions
from backends.gpu.threads.thread import All, Launch, ThreadProgram
from backends.gpu.tile import Name
from ir.sizes import power_of_two
from ir.spec import Apply, Expr, Number, Size

_OPERATORS: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Eq: lambda a, b: int(a == b),
}
_FUNCTIONS: dict[str, Callable[..., int]] = {
    "cdiv": lambda a, b: -(-a // b),
    "round_up": lambda a, b: -(-a // b) * b,
    "next_power_of_2": power_of_two,
    "bit_length": int.bit_length,
    "all": lambda *conditions: int(all(conditions)),
    "max": max,
    "min": min,
}
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%"}
_CALLS = {"maximum": "max", "minimum": "min"}


@dataclass(frozen=True, slots=True)
class Map:
    """The tensor map of a tensor, at given sizes."""

    tensor: int  # number in the kernel's list of tensors
    dtype: str
    sizes: tuple[int, ...]  # elements along each dimension, row-major
    box: tuple[int, ...]
    steps: tuple[int, ...]  # element strides of the box along each dimension
    swizzle: int  # bytes; 0: none


@dataclass(frozen=True, slots=True)
class Call:
    """One launch at given sizes."""

    name: str
    grid: int  # thread blocks
    block: int  # threads of a block
    shared: int  # bytes of a block
    tensors: tuple[int, ...]  # numbers in the kernel's list of tensors
    arguments: tuple[int, ...]  # sizes, then the step of a recurrence, if any
    maps: tuple[Map | None, ...] = ()  # None: the TMA does not take the tensor, and is not used
    cluster: int = 1  # thread blocks of a cluster
    cooperative: bool = False  # whether all blocks run concurrently


def metadata(program: ThreadProgram) -> dict[str, Any]:
    """The launches of a program as data, for a file beside the code."""
    return {
        "tensors": [p.name for p in program.tensors],
        "dtypes": [p.dtype for p in program.tensors],
        "groups": [
            {
                "repeat": None
                if repeat is None
                else {"size": text(repeat.size), "backwards": repeat.backwards},
                "launches": [_launch(one) for one in launches],
            }
            for repeat, launches in program.groups
        ],
    }


def _launch(launch: Launch) -> dict[str, Any]:
    tiles = " * ".join(f"({text(t)})" for t in launch.tiles) or "1"
    grid = f"min({tiles}, {launch.resident})" if launch.resident else tiles
    if launch.shares is not None:  # as many blocks as there are shares
        every = " * ".join(f"({text(t)})" for t in launch.shares.iterations)
        grid = f"cdiv({every}, cdiv({every}, {launch.resident}))"
    shared = [
        f"round_up(max(0, {', '.join(map(_product, r.sizes))}), {ALIGNED})" for r in regions(launch)
    ]
    fixed = {f"SIZE_{s}": s for s in launch.sizes} if launch.specialized else {}
    return {
        "name": launch.name,
        "grid": grid,
        "block": launch.block_threads,
        "registers": launch.registers,  # limit per thread; 0: none
        "shared": " + ".join(shared) or "0",
        "cluster": text(launch.cluster) if launch.cluster else "1",
        "tensors": list(launch.tensors),
        "arguments": [] if launch.specialized else list(launch.sizes),
        "step": launch.step is not None,
        "cooperative": launch.steps is not None,
        "limits": {text(size): most for size, most in launch.limits},
        "maps": [
            {
                "tensor": m.tensor,
                "dtype": m.dtype,
                "sizes": [text(e) for e in m.sizes],
                "box": [text(e) for e in m.box],
                "steps": list(m.steps),
                "swizzle": m.swizzle,
                "described": text(m.described),
            }
            for m in launch.maps
        ],
        "constants": fixed | {constant_name(n): text(e) for n, e in launch.constants},
    }


def _product(factors: tuple[Expr | int, ...]) -> str:
    return " * ".join(str(f) if isinstance(f, int) else f"({text(f)})" for f in factors)


def text(expr: Expr) -> str:
    """An integer expression as text. Raises BackendError where it has no text form."""
    match expr:
        case Number(value):
            return str(int(value))
        case Size(name):
            return name
        case Name():
            return constant_name(expr)
        case of.Tiles(size, tile):
            return f"cdiv({text(size)}, {tile})"
        case of.BlockWidth(size, least):
            return f"max({least}, next_power_of_2({text(size)}))"
        case of.Even(size, Number(width)):
            return f"({text(size)}) % {width} == 0"
        case of.Even(size, width):
            return f"({text(size)}) == ({text(width)})"
        case of.Bits(number):
            return f"bit_length({text(number)})"
        case All(conditions):
            return f"all({', '.join(map(text, conditions))})"
        case Padded(extent, padding):
            return f"{text(extent)} + {padding}"
        case Apply(function, (a, b)) if function in _SIGNS:
            return f"({text(a)}) {_SIGNS[function]} ({text(b)})"
        case Apply(function, args) if function in _CALLS:
            return f"{_CALLS[function]}({', '.join(map(text, args))})"
    raise BackendError("emit", f"a {type(expr).__name__} is no number of a launch")


_TOO_DEEP = (RecursionError, MemoryError)  # of Python's parser, at deeply nested brackets
_SHOWN = 200  # characters of a text that a message shows


def value(source: str, sizes: Mapping[str, int]) -> int:
    """The value of a launch's text at given sizes. Raises BackendError where it is no such text."""
    try:
        return _value(ast.parse(source, mode="eval").body, sizes)
    except (SyntaxError, KeyError, ArithmeticError, TypeError, ValueError, *_TOO_DEEP) as error:
        shown = source if len(source) <= _SHOWN else f"{source[:_SHOWN]}..."
        raise BackendError("build", f"`{shown}` is no number of a launch: {error}") from None


def _value(node: ast.expr, sizes: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(int() as number):
            return number
        case ast.Name(name):
            return int(sizes[name])
        case ast.BinOp(left, op, right) | ast.Compare(left, [op], [right]):
            return _OPERATORS[type(op)](_value(left, sizes), _value(right, sizes))
        case ast.Call(ast.Name(name), args, []):
            return _FUNCTIONS[name](*(_value(a, sizes) for a in args))
    raise TypeError(ast.unparse(node))


def constants(given: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[str, int]:
    """The constants with which a file is compiled at given sizes."""
    found: dict[str, int] = {}
    for group in given["groups"]:
        for launch in group["launches"]:
            for name, source in launch["constants"].items():
                found[name] = value(source, {**sizes, **found})
    return found


def calls(given: Mapping[str, Any], sizes: Mapping[str, int]) -> Iterator[Call]:
    """The launches at given sizes in order; a recurrence's launches once for each step."""
    known = {**sizes, **constants(given, sizes)}
    for group in given["groups"]:
        repeat = group["repeat"]
        steps = range(value(repeat["size"], known)) if repeat else range(1)
        for step in reversed(steps) if repeat and repeat["backwards"] else steps:
            for launch in group["launches"]:
                for size, most in launch["limits"].items():
                    if value(size, known) > most:
                        what = f"{launch['name']} is made for {size} up to {most}"
                        raise BackendError("check", f"{what}, not {value(size, known)}")
                yield Call(
                    name=launch["name"],
                    grid=value(launch["grid"], known),
                    block=launch["block"],
                    shared=value(launch["shared"], known),
                    cluster=value(launch["cluster"], known),
                    cooperative=launch["cooperative"],
                    tensors=tuple(map(given["tensors"].index, launch["tensors"])),
                    arguments=(
                        *(int(known[a]) for a in launch["arguments"]),
                        *([step] if launch["step"] else []),
                    ),
                    maps=tuple(_map(m, given["tensors"], known) for m in launch["maps"]),
                )


def _map(given: Mapping[str, Any], tensors: list[str], known: Mapping[str, int]) -> Map | None:
    """A tensor map at given sizes."""
    if not value(given["described"], known):
        return None
    sizes, box = (tuple(value(e, known) for e in given[part]) for part in ("sizes", "box"))
    tensor, steps = tensors.index(given["tensor"]), tuple(given["steps"])
    return Map(tensor, given["dtype"], sizes, box, steps, given["swizzle"])
