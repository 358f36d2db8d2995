"""Spelling: how names and dtypes of a nest are written in the device's C++."""

from __future__ import annotations

import re

from backends.shared.names import Names
from backends.shared.words import KEYWORDS
from ir.spec import DTYPES

# Words that a kernel's text has of itself: of its program, of `device.h`, of the headers it needs.
WORDS = KEYWORDS | frozenset(
    """
    pe args count tile rest axis inf afresh accumulate device least tiles pad indirect scattered
    run_of KERNEL SIZE_MAX SIZE_WIDTH
    """.split()
)
NAMES = Names(
    WORDS,
    re.compile(r"(U?INT|PTRDIFF|SIG_ATOMIC|WCHAR|WINT)\w*_(MAX|MIN|WIDTH|C)"),
    # A temporary, a named box, a word of C++ once a buffer's ending is put to it, and what the
    # device keeps for itself.
    re.compile(rf"({'|'.join(DTYPES)})_.*_\d+|box|box_.*|char8|char16|char32|wchar|_.*|.*__.*|.*_"),
    ("t", "g", "at", "n", "group", "tiles", "low", "high"),
)
OPS = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "div": "div",
    "floordiv": "floordiv",
    "mod": "mod",
    "pow": "pow",
    "neg": "neg",
    "lt": "lt",
    "le": "le",
    "gt": "gt",
    "ge": "ge",
    "eq": "eq",
    "ne": "ne",
    "and": "and_",
    "or": "or_",
    "not": "not_",
    "where": "select",
    "minimum": "min",
    "maximum": "max",
    "abs": "abs",
    "floor": "floor",
    "ceil": "ceil",
    "exp": "exp",
    "log": "log",
    "sqrt": "sqrt",
    "rsqrt": "rsqrt",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "erf": "erf",
    "sin": "sin",
    "cos": "cos",
    "silu": "silu",
    "gelu": "gelu",
    "copy": "copy",
    "xor": "xor_",
    "fmod": "fmod",
    "uniform": "uniform",
}
OPS |= {
    name: name
    for name in (
        *("round", "trunc", "sign", "isnan", "isinf", "isfinite", "shl", "shr", "exp2", "expm1"),
        *("log2", "log10", "log1p", "erfc", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh"),
        *("asinh", "acosh", "atanh"),
    )
}
OF_INTEGERS = {  # operations that are others where the result is an integer
    "and": "bit_and",
    "or": "bit_or",
    "xor": "bit_xor",
    "not": "bit_not",
    "pow": "ipow",
}
REDUCTIONS = {"sum": "sum", "max": "max", "min": "min", "prod": "prod", "any": "max", "all": "min"}


def axis(name: str) -> str:
    """The enumerator of an axis."""
    return f"{name}_" if name in KEYWORDS else name
