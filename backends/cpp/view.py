"""The view of a nest that the template formats, and the names that its text can hold."""

from __future__ import annotations

import re
from typing import Any

from backends.cpp.statements import Statements
from backends.shared.texts import number, size
from backends.shared.words import KEYWORDS
from ir.digest import spec_digest, text_digest
from ir.nest.legal import legal
from ir.nest.nest import Launch, LoopNest
from ir.print import equation_text

# Words that a text has of itself: of its program, of `kernel.h`, of `functions.h`.
WORDS = KEYWORDS | frozenset(
    """
    i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 fn inf args scratch tile count first rest acc run
    least tiles inside rank add_to blocks product_blocks least_of most_of
    KERNEL NULL INT32_MAX INT32_MIN INT64_MAX INT64_MIN
    """.split()
)
_MACRO = re.compile(r"(U?INT|PTRDIFF|SIG_ATOMIC|WCHAR|WINT|SIZE|EXIT|RAND|MB)\w*|W[A-Z]+|.*_")
_MADE = re.compile(r"_.*|.*__.*|.*_|char8|char16|char32|wchar|least_of|most_of|product_blocks")
_ENDINGS = ("t", "g", "p", "i", "at", "n", "tiles", "low", "high", "tensor")


def launch_name(name: str) -> str:
    """The function of a launch."""
    return re.sub("__+", "_", name) + "_launch"


def spelled(nest: LoopNest) -> LoopNest:
    """The nest under names that its text can hold."""
    bare = {n for n, _ in nest.spec.attributes}

    def alone(name: str) -> bool:
        return name.isupper() or name in bare

    def refuses(name: str) -> bool:
        word = name in WORDS or bool(_MACRO.fullmatch(name))
        return alone(name) and word or bool(_MADE.fullmatch(name))

    def spells(name: str) -> tuple[str, ...]:
        return (name,) if alone(name) else tuple(f"{name}_{ending}" for ending in _ENDINGS)

    return legal(nest, refuses, spells)


def kernel_view(nest: LoopNest) -> dict[str, Any]:
    """The values of the template `kernel.cc.j2`."""
    spec, nest = nest.spec, spelled(nest)
    digests = {"spec": spec_digest(spec), "schedule": text_digest(str(nest.schedule))}
    launches = [_launch(nest, launch) for launch in nest.launches]
    return {"nest": nest, "digests": digests, "launches": launches}


def _launch(nest: LoopNest, launch: Launch) -> dict[str, Any]:
    statements = Statements(launch)
    tensors = {v.tensor for v in launch.values}
    equations = [e for e in nest.variant.equations if e.target in tensors]
    return {
        "name": launch_name(launch.name),
        "title": [equation_text(e) for e in equations],
        "sizes": launch.sizes,
        "step": launch.repeat.index if launch.repeat else "",
        "attributes": [(n, number(v)) for n, v in nest.spec.attributes],
        "tensors": [(p.name, p.dtype) for p in launch.parameters],
        "grid": [(g.index, g.tile, size(g.size)) for g in launch.grid],
        "whole": [(i, size(e)) for i, e in launch.whole],
        "held": [(v.name, v.dtype, [size(a.extent) for a in v.axes]) for v in launch.values],
        "once": statements.block(launch.once, once=True),
        "body": statements.block(launch.body),
    }
