"""Names of a nest that a language's source can hold, distinct from the identifiers that the source adds."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from ir.nest.legal import legal
from ir.nest.nest import LoopNest


@dataclass(frozen=True, slots=True)
class SourceNames:
    """The identifiers of a language's sources."""

    words: frozenset[str]  # that every source has
    made: re.Pattern[str]  # temporaries, and identifiers of positions and pointers
    of_tensor: tuple[str, ...]  # sorts of identifiers that a source derives from a tensor's name
    of_index: tuple[str, ...]  # sorts of identifiers that a source derives from an index's name
    capitals: tuple[str, ...]  # sorts that are in capitals
    forms: Callable[[], Mapping[str, str]]  # the templates' form of each sort, with a %s

    def spelled(self, nest: LoopNest, reserved: Collection[str] = ()) -> LoopNest:
        """The nest, renamed so that its source can hold it. reserved: further words of the source."""
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
        """The identifiers that a source may derive from a tensor, a value or an index; none from a size."""
        forms = self.forms()
        return tuple(
            forms[sort] % (name.upper() if sort in self.capitals else name)
            for sort in (() if name.isupper() else sorts)
        )
