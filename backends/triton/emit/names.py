"""Names of a nest that a Triton source can hold, distinct from the identifiers that the source adds."""

from __future__ import annotations

import keyword
import re
from dataclasses import replace
from functools import cache

from backends.gpu.names import SourceNames
from backends.gpu.tile import CONSTANTS
from backends.triton.emit.spelling import HELPERS, templates
from ir.nest.nest import LoopNest

# Words of a source: of Python, of modules, of the launcher and of the grid.
WORDS = frozenset(
    (
        *keyword.kwlist,
        *HELPERS,
        *"tl triton torch libdevice TensorDescriptor launch tensor LOG2_E".split(),
        *"range reversed min max float int bool str len type isinstance tuple list dict set".split(),
        *"abs all any divmod enumerate getattr hasattr map next print round sorted sum zip".split(),
        *"tile tiles within group_start group_size in_group".split(),
    )
)


@cache
def _forms() -> dict[str, str]:
    return dict(templates().table("names.py.j2", "NAMES"))


NAMES = SourceNames(
    WORDS,
    made=re.compile(r"part_\d+|.+_dim\d+(_\d+)?|.+_(at|ptr)|(offs|mask)_.+"),
    of_tensor=("pointer", "descriptor", "factor", "steps", "bulk"),
    of_index=(
        *("origin", "positions", "mask", "width", "even", "tiles"),
        *("step", "low", "high"),
    ),
    capitals=tuple(CONSTANTS),
    forms=_forms,
)


def spelled(nest: LoopNest) -> LoopNest:
    """The nest, renamed so that its source can hold it. The spec gets the name of the function that users call."""
    made = NAMES.spelled(nest)
    if made.spec.name not in WORDS:
        return made
    return replace(made, spec=replace(made.spec, name=f"{made.spec.name}_"))
