"""Names of a nest that a source can hold, distinct from the identifiers that the source adds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from backends.emit import Templates
from backends.gpu.names import SourceNames
from backends.gpu.source.spelling import FILTERS
from backends.gpu.tile import CLUSTER, CONSTANTS, Name
from backends.shared.words import KEYWORDS
from ir.nest.nest import LoopNest
from ir.sizes import bind

# Words of a source and of its header.
WORDS = KEYWORDS | frozenset(
    """
    i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f8e4m3 f8e5m2 f8e8m0 fn thread tile carry distance run join part converted
    tiles within group_start group_size in_group cdiv round_up least most least_of most_of swizzle
    panel load store copy_async commit_copies wait_copies add_to rank shuffle_xor scan scan_after pair
    block share begin end tile_begin peer take_number fence_device raise_flag await_raised
    unpair shared_at shared_address shared_bytes load_matrices load_matrices_transposed Word Vector Own
    """.split()
)
# Includes names of the compiler.
_MADE = re.compile(r"part_\d+|.+_(at|ptr|i)|.+_n\d*|(offs|mask)_.+|k[A-Z].*|_.*|.*_|.*__.*|SIZE_.*")


@cache
def _forms() -> dict[str, str]:
    return dict(Templates("threads", filters=FILTERS).table("names.j2", "NAMES"))


NAMES = SourceNames(
    WORDS,
    _MADE,
    of_tensor=("pointer", "map", "shared", "next", "factor", "steps", "aligned"),
    of_index=(
        *("origin", "positions", "mask", "width", "even", "tiles", CLUSTER),
        *(
            "step",
            "low",
            "high",
            "stage",
            "read_stage",
            "write_stage",
            "ahead_stage",
            "issue",
            "chunk",
        ),
        *("full", "empty", "read_parity", "write_parity", "ahead_parity", "iterations"),
    ),
    capitals=(*CONSTANTS, "aligned", CLUSTER),
    forms=_forms,
)


def known_sizes(nest: LoopNest, own: LoopNest, sizes: Mapping[str, int]) -> dict[str, int]:
    """All sizes under their names in a source. own: the nest under these names."""
    names = dict(zip((n for n, _ in nest.sizes), (n for n, _ in own.sizes), strict=True))
    return bind(own.spec, {names[n]: v for n, v in sizes.items()})


def constant_name(name: Name) -> str:
    """The name of a constant in a source, as in the templates."""
    return _forms()[name.sort] % name.stem.upper() + (f"_{name.copy}" if name.copy else "")
