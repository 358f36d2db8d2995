"""Matrix instructions: shape, operand dtypes and layouts of what the hardware multiplies at once.

Families of instructions are files of `instructions/`, which a target file names. Layouts are text
in CuTe notation, (thread, register) -> element, column-major: row + M * k of A, column + N * k of
B, row + M * column of C and D. A register holds one element; elements narrower than 32 bits are
packed. The layouts come from the vendors' documents, not from measurements.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from ir.errors import KernelError
from ir.machine import Machine
from ir.spec import DTYPES
from machines.fields.fields import FLAG, RATE, SIZE, Fields, Kind, require

FOLDER = Path(__file__).parent / "instructions"
# f8 formats whose largest exponent encodes finite numbers, and whose negative zero is NaN.
ELEMENTS = (*DTYPES, "f8e4m3fnuz", "f8e5m2fnuz")
MAJORS = ("k", "mn")

_LAYOUT = re.compile(r"[\d(),]+:[\d(),]+")
_SWIZZLE = re.compile(r"Sw<\d,\d,\d>")


@dataclass(frozen=True, slots=True)
class Operand:
    """A matrix of an instruction."""

    dtype: str
    registers: str  # layout (thread, register) -> element; empty: not taken from registers
    shared: tuple[str, ...] = ()  # dimensions that may be contiguous in shared memory; of MAJORS
    tensor: bool = False  # whether it is in tensor memory, from which `registers` are loaded


@dataclass(frozen=True, slots=True)
class MatrixInstruction:
    """One row of a family: D = A * B + C, where D has the layout of C."""

    name: str  # assembly mnemonic; `{n}` is N where it varies
    family: str
    m: int
    n: int  # least N; the layout of C has this many columns, and repeats for larger N
    k: int
    sizes_n: tuple[int, ...]  # all N
    threads: int  # that execute it together
    a: Operand
    b: Operand
    c: Operand
    cycles: float | None  # issue interval, where a source states it
    swizzles: tuple[str, ...]  # swizzles of bytes that operands in shared memory may have
    source: str  # of the layouts
    # Elements along K that share a scale, a power of two in f8e8m0; 0: no scales. `scales` is the
    # layout of the scales of A, (thread, register) -> row + M * block; those of B are alike.
    block: int = 0
    scales: str = ""


def _list_of(allowed: str, holds, least: int = 1) -> Kind:
    return Kind(
        f"a list of {allowed}",
        lambda v: isinstance(v, list) and len(v) >= least and all(map(holds, v)),
    )


def _text(pattern: str | re.Pattern[str]):
    return lambda v: isinstance(v, str) and re.fullmatch(pattern, v) is not None


def _types(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 3 and all(v in ELEMENTS for v in value)


def _range(value: Any) -> bool:
    """Whether a value is the first, last and step of a range of sizes."""
    if not (isinstance(value, list) and len(value) == 3 and all(map(SIZE.holds, value))):
        return False
    return value[0] <= value[1] and (value[1] - value[0]) % value[2] == 0


_REGISTERS = Kind("a layout (thread, register) -> element, such as (32,4):(4,1)", _text(_LAYOUT))
_SHARED = replace(_list_of(f"some of {', '.join(MAJORS)}", lambda v: v in MAJORS), optional=True)
_INPUT: Fields = {"registers": replace(_REGISTERS, optional=True), "shared": _SHARED}
_ROW: Fields = {
    "name": Kind("a word with {a} {b} {c} {n}", _text(r"(\w|\.|\{[abcn]\})+")),
    "shape": Kind(
        "M, N and K", lambda v: isinstance(v, list) and len(v) == 3 and all(map(SIZE.holds, v))
    ),
    "n": replace(_list_of("[first, last, step]", _range), optional=True),
    "types": _list_of(f"types of A, B and C, each of {', '.join(ELEMENTS)}", _types),
    "a": _INPUT,
    "b": _INPUT,
    "c": {"registers": _REGISTERS, "tensor": replace(FLAG, optional=True)},
    "cycles": replace(RATE, optional=True),
    "block": replace(SIZE, optional=True),
    "scales": replace(_REGISTERS, optional=True),
}
_FAMILY: Fields = {
    "source": Kind("a text", _text(r".+")),
    "threads": SIZE,
    "spelling": Kind(
        "a table from dtypes to words",
        lambda v: (
            isinstance(v, Mapping)
            and set(v) <= set(ELEMENTS)
            and all(map(_text(r"\w+"), v.values()))
        ),
        optional=True,
    ),
    "swizzles": replace(_list_of("swizzles, such as Sw<3,4,3>", _text(_SWIZZLE)), optional=True),
    "instruction": _list_of("tables", lambda v: isinstance(v, Mapping)),
}


def families() -> tuple[str, ...]:
    """The names of all families."""
    return tuple(sorted(p.stem for p in FOLDER.glob("*.toml")))


@cache
def family(name: str) -> tuple[MatrixInstruction, ...]:
    """The instructions of a family, one for each combination of types."""
    file = FOLDER / f"{name}.toml"
    return rows(tomllib.loads(file.read_text(encoding="utf-8")), name)


def of_machine(machine: Machine) -> tuple[MatrixInstruction, ...]:
    """The instructions of a machine; empty where its target file names no family."""
    return tuple(i for name in machine.details["gpu"].get("instructions", ()) for i in family(name))


def rows(table: Mapping[str, Any], name: str) -> tuple[MatrixInstruction, ...]:
    """The rows of a family's table. Raises KernelError at the first field that is wrong."""
    require(table, _FAMILY, _refusing(name))
    for number, row in enumerate(table["instruction"]):
        refuse = _refusing(name, f"instruction[{number}].")
        require(row, _ROW, refuse)
        for operand in "ab":
            if not row[operand]:
                refuse(operand, "is empty", "`registers`, `shared` or both")
        if ("block" in row) != ("scales" in row) or row["shape"][2] % row.get("block", 1):
            refuse("block", "does not go with `scales`", "both, and a divisor of K, or neither")
        if row.get("n", [row["shape"][1:]])[0][0] != row["shape"][1]:
            refuse("n", f"is {row['n']}", f"first the N of `shape`, {row['shape'][1]}")
    return tuple(
        _instruction(table, row, types, name)
        for row in table["instruction"]
        for types in row["types"]
    )


def _instruction(
    table: Mapping[str, Any], row: Mapping[str, Any], types: list[str], family: str
) -> MatrixInstruction:
    m, n, k = row["shape"]
    spelled = {d: table.get("spelling", {}).get(t, t) for d, t in zip("abc", types)}
    sizes = tuple(
        n for first, last, step in row.get("n", [[n, n, 1]]) for n in range(first, last + 1, step)
    )
    operands = [
        Operand(
            dtype,
            row[d].get("registers", ""),
            tuple(row[d].get("shared", ())),
            row[d].get("tensor", False),
        )
        for d, dtype in zip("abc", types)
    ]
    return MatrixInstruction(
        name=row["name"].format(**spelled, n="{n}"),
        family=family,
        m=m,
        n=n,
        k=k,
        sizes_n=sizes,
        threads=table["threads"],
        a=operands[0],
        b=operands[1],
        c=operands[2],
        cycles=row.get("cycles"),
        swizzles=tuple(table.get("swizzles", ())),
        source=table["source"],
        block=row.get("block", 0),
        scales=row.get("scales", ""),
    )


def _refusing(family: str, prefix: str = ""):
    def refuse(path: str, what: str, allowed: str = "", hint: str = "") -> NoReturn:
        raise KernelError(
            f"field `{prefix}{path}` {what}", where=f"instructions/{family}.toml", allowed=allowed
        )

    return refuse
