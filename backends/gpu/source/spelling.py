"""Spelling: what the templates ask of values beside their fields."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from backends.gpu import values
from backends.gpu.source import layouts
from backends.gpu.source.view import Kernel
from backends.gpu.threads.thread import Each, Element, Shared
from backends.gpu.tile import Compute, Joined, Name
from ir.print import equation_text
from ir.spec import Apply, Equation, Expr, Number, Size

TITLE = 96  # columns of a line that tells an equation


def kind(node: object) -> str:
    """The sort of a node."""
    return type(node).__name__


def negative(expr: Expr) -> bool:
    """Whether an expression is a negative constant."""
    return isinstance(expr, Number) and not isinstance(expr.value, bool) and expr.value < 0


def loose(expr: Expr) -> bool:
    """Whether a scalar needs brackets before a product."""
    return negative(expr) or isinstance(expr, Apply) and expr.function in ("add", "sub")


def divides(expr: Expr) -> bool:
    """Whether a scalar needs brackets as a factor on the right."""
    return isinstance(expr, Apply) and expr.function in ("floordiv", "mod")


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


FILTERS: dict[str, Any] = {
    f.__name__: f
    for f in (
        *(kind, negative, loose, divides, whole, one, added, onto, tile, titles),
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
        *(layouts.scan_threads, layouts.scan_distance, values.adds, values.signed),
    )
}
