"""Formatting: the templates of this language, and their functions in addition to the shared
ones."""

from __future__ import annotations

import re
from functools import cache

from backends.backend import BackendError
from backends.emit import Templates
from backends.gpu.source.spelling import FILTERS

_SHAPE = re.compile(
    r"v_mfma_(scale_)?[fi]\d+_(\d+x\d+x\d+)_(f16|bf16|f32|xf32|f64|i8|f8f6f4|(?:fp8|bf8)_(?:fp8|bf8))"
)
MFMA = frozenset(  # shapes with functions in kernel.h
    """
    16x16x16 32x32x8 16x16x4 32x32x2 16x16x8 32x32x4 16x16x32 32x32x16 16x16x64 32x32x32 16x16x128
    32x32x64
    """.split()
)
SCALED = frozenset({"16x16x128", "32x32x64"})  # among them, those with block scales


_ZERO = re.compile(r"(?:[a-z]\w*\()?0(?:\.0f)?\)?|false")


def read_where(tensor: str, at: str, mask: str, other: str) -> str:
    """The element of a tensor if a mask holds, else another value."""
    return f"read({tensor}, {at}, {mask}{f', {other}' if chosen(other) else ''})"


def chosen(other: str) -> bool:
    """Whether the other value is not 0, so that a second selection is necessary."""
    return not _ZERO.fullmatch(other)


def write_where(tensor: str, at: str, mask: str, value: str, pad: str) -> str:
    """Stores a value if a mask holds."""
    return f"{pad}write({tensor}, {at}, {mask}, {value});"


def masked_place(tensor: str, at: str) -> str:
    """The start of the elements that `load` and `store` move under a mask."""
    return f"place({tensor}, {at})"


WHERE = {f.__name__: f for f in (read_where, chosen, write_where, masked_place)}


@cache
def templates() -> Templates:
    """The templates of HIP C++."""
    return Templates("hip", filters=FILTERS | {"mma": mfma} | WHERE)


def mfma(name: str) -> str:
    """The function of kernel.h for a matrix instruction. Raises BackendError if there is none."""
    found = _SHAPE.fullmatch(name)
    if found is None or found[2] not in (SCALED if found[1] else MFMA):
        raise BackendError("emit", f"kernel.h has no function for `{name}`")
    return f"mfma_{'scaled_' if found[1] else ''}{found[2]}"
