"""Names: what the spec of a module calls its tensors and its open sizes."""

from __future__ import annotations

import re

from ir.errors import KernelError
from ir.parse.expression import RESERVED, is_size

_INDEX = re.compile(r"i\d+")  # how a builder names its indices


def tensor_name(path: str) -> str:
    """A name of the language for `layers.0.Weight`: `layers_0_weight`."""
    name = re.sub(r"[^a-z0-9_]+", "_", path.lower()).strip("_") or "x"
    taken = name in RESERVED or _INDEX.fullmatch(name)
    return f"x_{name}" if taken or name[0].isdigit() else name


def size_name(name: str, where: str) -> str:
    """The name of an open size, checked."""
    if not is_size(name):
        raise KernelError(
            f"`{name}` cannot name a size",
            where=where,
            allowed="upper-case letters, digits and _, a letter first",
            hint="B, SEQ, H2",
        )
    return name
