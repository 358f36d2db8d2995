"""Names: those of a nest as a source can hold them, beside what it has of itself."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache

from backends.emit import Templates
from backends.gpu.source.spelling import FILTERS
from backends.gpu.tile import CONSTANTS, Name
from backends.shared.words import KEYWORDS
from ir.nest.legal import legal
from ir.nest.nest import LoopNest

# Words that a source has of itself, and of its header.
WORDS = KEYWORDS | frozenset(
    """
    i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 fn thread tile carry distance run join part converted
    tiles within group_start group_size in_group cdiv round_up least most least_of most_of swizzle
    panel load store copy_async commit_copies wait_copies add_to rank shuffle_xor scan pair unpair
    shared_at shared_address shared_bytes load_matrices load_matrices_transposed Word Vector Own
    """.split()
)
# Temporaries, what positions and pointers are called, and names of the compiler.
_MADE = re.compile(r"part_\d+|.+_(at|ptr|i)|.+_n\d*|(offs|mask)_.+|k[A-Z].*|_.*|.*_|.*__.*|SIZE_.*")
_OF_TENSOR = ("pointer", "shared", "factor", "steps", "aligned")
_OF_INDEX = (
    *("origin", "positions", "mask", "width", "even", "tiles"),
    *("step", "low", "high", "stage", "read_stage", "write_stage", "issue"),
)


def spelled(nest: LoopNest, reserved: Collection[str]) -> LoopNest:
    """The nest under names that its source can hold. reserved: words of its language beside WORDS."""
    words = WORDS | {*reserved} | {launch.name for launch in nest.launches}
    indices = {i for la in nest.launches for i, _ in (*la.tiles, *la.whole)}
    tensors = {n for la in nest.launches for v in la.values for n in (v.name, v.tensor)}

    def refuses(name: str) -> bool:
        return name in words or bool(_MADE.fullmatch(name))

    def spells(name: str) -> tuple[str, ...]:
        own = () if name in indices else called(name, _OF_TENSOR)
        return (name, *own, *(() if name in tensors else called(name, _OF_INDEX)))

    return legal(nest, refuses, spells)


def called(name: str, sorts: tuple[str, ...]) -> tuple[str, ...]:
    """What a source may call after a tensor, a value or an index; nothing after a size."""
    forms = _forms()
    return tuple(
        forms[sort] % (name.upper() if sort in (*CONSTANTS, "aligned") else name)
        for sort in (() if name.isupper() else sorts)
    )


@cache
def _forms() -> dict[str, str]:
    return dict(Templates("threads", filters=FILTERS).table("names.j2", "NAMES"))


def constant_name(name: Name) -> str:
    """What a source calls a constant, as its templates do."""
    return _forms()[name.sort] % name.stem.upper() + (f"_{name.copy}" if name.copy else "")
