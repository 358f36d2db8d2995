"""Predicates and texts of values that the templates use."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from backends.gpu import spelling
from backends.gpu.source import layouts
from backends.gpu.source.view import Kernel
from backends.gpu.threads.thread import Each, Element, Shared
from backends.gpu.tile import Compute, Joined, Name
from ir.print import equation_text
from ir.spec import Equation, Expr, Number, Size

TITLE = 96  # columns of a comment line with an equation


def whole(expr: Expr) -> bool:
    """Whether an operand is an integer of the launch, whose quotient may not be one."""
    number = isinstance(expr, Number) and type(expr.value) is int
    return number or isinstance(expr, Size) and expr.name.isupper()


def one(expr: Expr) -> bool:
    """Whether an expression is 1."""
    return expr == Number(1)


def added(s: Each) -> bool:
    """Whether a statement adds something to a fragment."""
    match s.value:
        case Joined("sum", Element(name)) | Compute("add", (Element(name), _)):
            return name == s.name
    return False


def onto(value: Expr) -> Expr:
    """The value that is added."""
    return value.value if isinstance(value, Joined) else value.args[1]  # type: ignore[attr-defined]


def tile(kernel: Kernel, name: Name) -> Shared:
    """A shared memory tile."""
    return kernel.tile(name)


def titles(equations: tuple[Equation, ...]) -> Iterator[str]:
    """The comment lines of equations."""
    for equation in map(equation_text, equations):
        yield from textwrap.wrap(equation, TITLE, subsequent_indent="    ")


def read_where(tensor: str, at: str, mask: str, other: str) -> str:
    """The text of reading a tensor's element where a mask holds, else another value."""
    return f"{mask} ? {tensor}[{at}] : {other}"


def chosen(other: str) -> bool:
    """Whether `load` takes a value for masked elements."""
    return bool(other)


def write_where(tensor: str, at: str, mask: str, value: str, pad: str) -> str:
    """The text of storing a value where a mask holds."""
    return f"{pad}if ({mask})\n  {pad}{tensor}[{at}] = {value};"


def masked_place(tensor: str, at: str) -> str:
    """The address at which masked `load` and `store` access elements."""
    return f"{tensor} + {at}"


def flushed(name: str) -> str:
    """The function that may flush subnormal results to 0, where a language has one."""
    return name


def shortened(function: str) -> str:
    """The faster function that is accurate to 16 bits, where a language has one; else empty."""
    return ""


FILTERS: dict[str, Any] = spelling.FILTERS | {
    f.__name__: f
    for f in (
        *(whole, one, added, onto, tile, titles, read_where, chosen, write_where, masked_place),
        flushed,
        shortened,
        *(layouts.registers, layouts.kept, layouts.thread_modes, layouts.register_modes),
        *(
            layouts.overshoots,
            layouts.strides,
            layouts.rows,
            layouts.stage_size,
            layouts.vector,
            layouts.matrices,
            layouts.among,
        ),
        layouts.element_bytes,
        *(layouts.scan_threads, layouts.scan_distance, layouts.scan_parts),
    )
}
