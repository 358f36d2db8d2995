"""Spelling: the templates of CUDA C++, and filters for values beyond those of all languages."""

from __future__ import annotations

import re
from functools import cache

from backends.backend import BackendError
from backends.emit import Templates
from backends.gpu.source.spelling import FILTERS

_SHAPE = re.compile(r"m\d+n\d+k\d+")
MMA = ("mma_m16n8k16", "mma_m16n8k8", "mma_m16n8k32")  # functions of kernel.h


@cache
def templates() -> Templates:
    """The templates of CUDA C++."""
    return Templates(
        "cuda", filters=FILTERS | {"mma": mma, "flushed": flushed, "shortened": shortened}
    )


def flushed(name: str) -> str:
    """The name of the function's variant that returns 0 for subnormal results."""
    return f"{name}_flushed"


def shortened(function: str) -> str:
    """A faster function that matches another one to the precision of 16 bits; empty if there is none."""
    return {"gelu": "short_gelu"}.get(function, "")


def mma(name: str) -> str:
    """The function of kernel.h for a matrix instruction. BackendError if there is none."""
    shape = _SHAPE.search(name)
    found = f"mma_{shape[0]}" if shape else name
    if found not in MMA:
        raise BackendError("emit", f"kernel.h has no function for `{name}`")
    return found
