"""The view of a nest that the template formats, and the names that its text can hold."""

from __future__ import annotations

import re
from typing import Any

from backends.cpp.matmul import Statements
from backends.shared.names import Names
from backends.shared.texts import size
from backends.shared.view import kernel_view
from backends.shared.words import RESERVED
from ir.nest.nest import Launch, LoopNest

NAMES = Names(
    RESERVED | {"scratch", "product_blocks"},
    re.compile(r"(U?INT|PTRDIFF|SIG_ATOMIC|WCHAR|WINT|SIZE|EXIT|RAND|MB)\w*|W[A-Z]+|.*_"),
    re.compile(r"_.*|.*__.*|.*_|char8|char16|char32|wchar|least_of|most_of|product_blocks"),
    ("t", "g", "p", "i", "at", "n", "tiles", "low", "high", "tensor"),
    function="_launch",
)
VECTOR = 16  # elements of f32: an axis with fewer does not fill one


def view(nest: LoopNest) -> dict[str, Any]:
    """The values of the template `kernel.cc.j2`."""
    return kernel_view(nest, NAMES, _launch)


def _launch(launch: Launch) -> dict[str, Any]:
    statements = Statements(launch, VECTOR)
    return {
        "held": [(v.name, v.dtype, [size(a.extent) for a in v.axes]) for v in launch.values],
        "once": statements.block(launch.once, once=True),
        "body": statements.block(launch.body),
    }
