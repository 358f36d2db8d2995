"""Renames parts of a nest so that a language's text can contain the names."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ir.nest.legal import legal
from ir.nest.nest import LoopNest


@dataclass(frozen=True, slots=True)
class Names:
    """The rules of a language for names."""

    words: frozenset[str]  # words of the language, of its headers and of emitted texts
    macros: re.Pattern[str]  # pattern of macros in its headers
    made: re.Pattern[str]  # pattern of identifiers that its texts make, and of reserved ones
    endings: tuple[str, ...]  # suffixes that make an identifier of a name: `x_t` for the suffix `t`
    function: str = ""  # suffix of a launch's function

    def is_word(self, name: str) -> bool:
        """Whether a name has a meaning of its own."""
        return name in self.words or bool(self.macros.fullmatch(name))

    def launch(self, name: str) -> str:
        """The function of a launch."""
        return re.sub("__+", "_", name) + self.function

    def spelled(self, nest: LoopNest) -> LoopNest:
        """The nest with valid names. Sizes and attributes appear bare in the text; all other names
        have a suffix."""
        bare = {n for n, _ in nest.spec.attributes}

        def alone(name: str) -> bool:
            return name.isupper() or name in bare

        def refuses(name: str) -> bool:
            return alone(name) and self.is_word(name) or bool(self.made.fullmatch(name))

        def spells(name: str) -> tuple[str, ...]:
            return (name,) if alone(name) else tuple(f"{name}_{e}" for e in self.endings)

        return legal(nest, refuses, spells)
