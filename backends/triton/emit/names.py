"""Names: those of a nest as a Triton source can hold them, beside what it has of itself."""

from __future__ import annotations

import keyword
import re
from dataclasses import replace
from functools import cache

from backends.gpu.tile import CONSTANTS
from backends.triton.emit.spelling import HELPERS, templates
from ir.nest.legal import legal
from ir.nest.nest import LoopNest

# Words that a source has of itself: of Python, of modules, of the launcher and of the grid.
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
# Temporaries, and what positions and pointers are called.
_MADE = re.compile(r"part_\d+|.+_dim\d+(_\d+)?|.+_(at|ptr)|(offs|mask)_.+")
_OF_TENSOR = ("pointer", "descriptor", "factor", "steps", "bulk")
_OF_INDEX = (
    *("origin", "positions", "mask", "width", "even", "tiles"),
    *("step", "low", "high"),
)


def spelled(nest: LoopNest) -> LoopNest:
    """The nest under names that its source can hold; its spec has that of the function that is
    called with its inputs."""
    words = WORDS | {launch.name for launch in nest.launches}
    indices = {i for la in nest.launches for i, _ in (*la.tiles, *la.whole)}
    tensors = {n for la in nest.launches for v in la.values for n in (v.name, v.tensor)}

    def refuses(name: str) -> bool:
        return name in words or bool(_MADE.fullmatch(name))

    def spells(name: str) -> tuple[str, ...]:
        own = () if name in indices else called(name, _OF_TENSOR)
        return (name, *own, *(() if name in tensors else called(name, _OF_INDEX)))

    made = legal(nest, refuses, spells)
    if made.spec.name not in WORDS:
        return made
    return replace(made, spec=replace(made.spec, name=f"{made.spec.name}_"))


def called(name: str, sorts: tuple[str, ...]) -> tuple[str, ...]:
    """What a source may call after a tensor, a value or an index; nothing after a size."""
    forms = _forms()
    return tuple(
        forms[sort] % (name.upper() if sort in CONSTANTS else name)
        for sort in (() if name.isupper() else sorts)
    )


@cache
def _forms() -> dict[str, str]:
    return dict(templates().table("names.py.j2", "NAMES"))
