"""Formatting: names and dtypes of a nest in the device's C++."""

from __future__ import annotations

import re

from backends.shared.names import Names
from backends.shared.words import KEYWORDS
from ir.spec import DTYPES

# Words of a kernel's text: of its program, of `device.h`, and of included headers.
WORDS = KEYWORDS | frozenset(
    """
    pe args count tile rest axis inf afresh accumulate device least tiles pad indirect scattered
    run_of KERNEL SIZE_MAX SIZE_WIDTH
    """.split()
)
NAMES = Names(
    WORDS,
    re.compile(r"(U?INT|PTRDIFF|SIG_ATOMIC|WCHAR|WINT)\w*_(MAX|MIN|WIDTH|C)"),
    # A temporary, a named box, a word of C++ with a buffer's suffix, and names that the device
    # reserves.
    re.compile(rf"({'|'.join(DTYPES)})_.*_\d+|box|box_.*|char8|char16|char32|wchar|_.*|.*__.*|.*_"),
    ("t", "g", "at", "n", "group", "tiles", "low", "high"),
)
_OPS = """
    add sub mul div floordiv mod pow neg lt le gt ge eq ne abs floor ceil exp log sqrt rsqrt
    tanh sigmoid erf sin cos silu gelu copy fmod uniform round trunc sign isnan isinf isfinite
    shl shr exp2 expm1 log2 log10 log1p erfc tan asin acos atan atan2 sinh cosh asinh acosh
    atanh
""".split()
OPS = {name: name for name in _OPS} | {
    "and": "and_",
    "or": "or_",
    "not": "not_",
    "where": "select",
    "minimum": "min",
    "maximum": "max",
    "xor": "xor_",
}
OF_INTEGERS = {  # operations with another name for integer results
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
