"""Blocks of statements as what a language makes of each, and the loops over tiles in them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from backends.shared.places import Element, affine
from backends.shared.texts import size
from ir.nest.nest import Bound, Launch, Loop, Statement


@dataclass(frozen=True, slots=True)
class Walk:
    """A loop over the tiles of an index; a bound is a text or an element in memory."""

    index: str
    tile: int
    low: str | Element
    high: str | Element
    backwards: bool
    body: tuple[object, ...]


class Blocks(ABC):
    """The blocks of one launch; a language says what becomes of a statement."""

    def __init__(self, launch: Launch):
        self.launch = launch
        self.values = {v.name: v for v in launch.values}

    def block(self, statements: tuple[Statement, ...], once: bool = False) -> tuple[object, ...]:
        """What a block does, in order. once: in the prologue, where only one of those that run
        the kernel together stores."""
        return tuple(node for s in statements for node in self.nodes(s, once))

    @abstractmethod
    def nodes(self, s: Statement, once: bool) -> Iterator[object]:
        """What becomes of a statement; BackendError("emit") where the language has nothing."""

    @abstractmethod
    def view(self) -> dict[str, Any]:
        """What the templates of the language format of the launch, beside what all languages have."""

    def walk(self, s: Loop, once: bool) -> Walk:
        """A loop over tiles."""
        body = self.block(s.body, once)
        return Walk(s.index, s.tile, self._bound(s.low), self._bound(s.high), s.backwards, body)

    def extents(self, value: str) -> dict[str, str]:
        """The extent of each axis of a value's tile, outermost first."""
        return {a.name: size(a.extent) for a in self.values[value].axes}

    def _bound(self, bound: Bound) -> str | Element:
        if bound.position is None:
            return size(bound.size)
        at = affine(bound.position.terms, bound.position.offset)
        return Element(bound.tensor, at, in_memory=True)
