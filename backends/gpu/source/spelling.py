"""Spelling: what the templates ask of values beside their fields."""

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

TITLE = 96  # columns of a line that tells an equation


def whole(expr: Expr) -> bool:
    """Whether an operand is a whole number of the launch, of which a quotient is no whole one."""
    number = isinstance(expr, Number) and type(expr.value) is int
    return number or isinstance(expr, Size) and expr.name.isupper()


def one(expr: Expr) -> bool:
    """Whether an expression is 1."""
    return expr == Number(1)


def added(s: Each) -> bool:
    """Whether something is added to a fragment."""
    match s.value:
        case Joined("sum", Element(name)) | Compute("add", (Element(name), _)):
            return name == s.name
    return False


def onto(value: Expr) -> Expr:
    """What is added."""
    return value.value if isinstance(value, Joined) else value.args[1]  # type: ignore[attr-defined]


def tile(kernel: Kernel, name: Name) -> Shared:
    """A tile in shared memory."""
    return kernel.tile(name)


def titles(equations: tuple[Equation, ...]) -> Iterator[str]:
    """The lines of equations."""
    for equation in map(equation_text, equations):
        yield from textwrap.wrap(equation, TITLE, subsequent_indent="    ")


def read_where(tensor: str, at: str, mask: str, other: str) -> str:
    """The element of a tensor where a mask holds, else another value."""
    return f"{mask} ? {tensor}[{at}] : {other}"


def chosen(other: str) -> bool:
    """Whether `load` is told what stands for elements that a mask leaves out."""
    return bool(other)


def write_where(tensor: str, at: str, mask: str, value: str, pad: str) -> str:
    """A value is stored where a mask holds."""
    return f"{pad}if ({mask})\n  {pad}{tensor}[{at}] = {value};"


def masked_place(tensor: str, at: str) -> str:
    """Where the elements begin that `load` and `store` move under a mask."""
    return f"{tensor} + {at}"


def flushed(name: str) -> str:
    """The function that may give 0 for subnormal results, where a language has one."""
    return name


def shortened(function: str) -> str:
    """The function that gives as much of another one as 16 bits hold, in less time, where a language has one; else
    empty."""
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
