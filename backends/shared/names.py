"""Names of a nest that the texts of a language can hold."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ir.nest.legal import legal
from ir.nest.nest import LoopNest


@dataclass(frozen=True, slots=True)
class Names:
    """What a language keeps of all names, and what its texts make of one."""

    words: frozenset[str]  # of the language, of its headers and of the texts themselves
    macros: re.Pattern[str]  # of its headers
    made: re.Pattern[str]  # identifiers that its texts make, and those that it reserves
    endings: tuple[str, ...]  # each with a name is an identifier: `x_t` for the ending `t`
    function: str = ""  # ending of the function of a launch

    def is_word(self, name: str) -> bool:
        """Whether a name means something by itself."""
        return name in self.words or bool(self.macros.fullmatch(name))

    def launch(self, name: str) -> str:
        """The function of a launch."""
        return re.sub("__+", "_", name) + self.function

    def spelled(self, nest: LoopNest) -> LoopNest:
        """The nest under names that its text can hold. Sizes and attributes stand alone there, all
        other names with an ending."""
        bare = {n for n, _ in nest.spec.attributes}

        def alone(name: str) -> bool:
            return name.isupper() or name in bare

        def refuses(name: str) -> bool:
            return alone(name) and self.is_word(name) or bool(self.made.fullmatch(name))

        def spells(name: str) -> tuple[str, ...]:
            return (name,) if alone(name) else tuple(f"{name}_{e}" for e in self.endings)

        return legal(nest, refuses, spells)
