"""Names: those of a nest as a source can hold them, beside what its language makes of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from ir.nest.legal import legal
from ir.nest.nest import LoopNest


@dataclass(frozen=True, slots=True)
class SourceNames:
    """The identifiers of a language's sources."""

    words: frozenset[str]  # that a source has of itself
    made: re.Pattern[str]  # temporaries, and what positions and pointers are called
    of_tensor: tuple[str, ...]  # sorts of identifiers that a source makes of a tensor's name
    of_index: tuple[str, ...]  # sorts of identifiers that a source makes of an index's name
    capitals: tuple[str, ...]  # sorts that are in capitals
    forms: Callable[[], Mapping[str, str]]  # the templates' form of each sort, with a %s

    def spelled(self, nest: LoopNest, reserved: Collection[str] = ()) -> LoopNest:
        """The nest under names that its source can hold. reserved: more words of the source."""
        words = self.words | {*reserved} | {launch.name for launch in nest.launches}
        indices = {i for la in nest.launches for i, _ in (*la.tiles, *la.whole)}
        tensors = {n for la in nest.launches for v in la.values for n in (v.name, v.tensor)}

        def refuses(name: str) -> bool:
            return name in words or bool(self.made.fullmatch(name))

        def spells(name: str) -> tuple[str, ...]:
            own = () if name in indices else self.called(name, self.of_tensor)
            return (name, *own, *(() if name in tensors else self.called(name, self.of_index)))

        return legal(nest, refuses, spells)

    def called(self, name: str, sorts: tuple[str, ...]) -> tuple[str, ...]:
        """What a source may call after a tensor, a value or an index; nothing after a size."""
        forms = self.forms()
        return tuple(
            forms[sort] % (name.upper() if sort in self.capitals else name)
            for sort in (() if name.isupper() else sorts)
        )
