"""Predicates and texts of values that the templates use."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterator
from functools import cache
from typing import Any

from backends.emit import Templates
from backends.gpu import spelling
from backends.gpu.tile import (
    Assign,
    Compute,
    Joined,
    Ranked,
    Reduced,
    Scanned,
)
from backends.triton.emit.lines import terms
from ir.print import equation_text
from ir.spec import Equation, Expr

TITLE = 92  # columns of a comment line with an equation
HELPERS = (  # functions that a source may contain, each from a template
    "larger",
    "smaller",
    "multiply",
    "rank",
    "floor_divide",
    "floor_modulo",
    "round_tf32",
    "float_floor_divide",
    "float_floor_modulo",
    "integer_power",
    "uniform",
)
_BY_HELPER = {
    "floordiv": "floor_divide",
    "mod": "floor_modulo",
    "powi": "integer_power",
    "uniform": "uniform",
    "round_tf32": "round_tf32",
}
_BY_HELPER_ON_FLOATS = {"floordiv": "float_floor_divide", "mod": "float_floor_modulo"}
_COMBINERS = {"max": "larger", "min": "smaller"}
LIBRARY = frozenset(  # functions of libdevice, which do not take untyped constants and sizes
    (
        *("expm1", "log10", "log1p", "erfc", "tan", "asin", "acos", "atan", "atan2"),
        *("sinh", "cosh", "asinh", "acosh", "atanh"),
    )
)
_OF_LIBRARY = LIBRARY | {"tanh", "pow"}
_OF_LIBRARY_ON_FLOATS = {"fmod", "round", "trunc", "floordiv", "mod"}


@cache
def templates() -> Templates:
    """Triton's templates, with their filters."""
    return Templates("triton", filters=FILTERS)


def helpers(every: Collection[Expr]) -> tuple[str, ...]:
    """The helpers that the expressions of a program call."""
    found = {_helper(e) for e in every}
    return tuple(h for h in HELPERS if h in found)


def by_library(every: Collection[Expr]) -> bool:
    """Whether the expressions of a program call libdevice, directly or in a helper."""
    return any(
        isinstance(e, Compute)
        and (e.function in _OF_LIBRARY or e.floats and e.function in _OF_LIBRARY_ON_FLOATS)
        for e in every
    )


def _helper(e: Expr) -> str | None:
    match e:
        case Compute(function, _, floats):
            own = _BY_HELPER_ON_FLOATS if floats else _BY_HELPER
            return own.get(function) or _BY_HELPER.get(function)
        case Reduced("prod"):
            return "multiply"
        case Reduced(reduction, nan=True) | Joined(reduction, nan=True) | Scanned(reduction):
            return _COMBINERS.get(reduction)
        case Ranked():
            return "rank"
    return None


def added(s: Assign) -> bool:
    """Whether a statement adds something to a variable."""
    match s.value:
        case Joined("sum", onto) | Compute("add", (onto, _)):
            return onto == s.name
    return False


def titles(equations: tuple[Equation, ...]) -> Iterator[str]:
    """The comment lines of equations; a long equation has a line for each term."""
    for equation in map(equation_text, equations):
        parts = terms(equation, within=1, groups=False) if len(equation) > TITLE else (equation,)
        for n, part in enumerate(parts):
            indent = "    " if n else ""
            yield from textwrap.wrap(part, TITLE, initial_indent=indent, subsequent_indent="    ")


def printable(text: str) -> str:
    """A docstring as one line that is safe between triple quotes."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return plain.replace("\\", "\\\\").replace('"', '\\"')


FILTERS: dict[str, Any] = spelling.FILTERS | {
    "added": added,
    "titles": titles,
    "printable": printable,
}
