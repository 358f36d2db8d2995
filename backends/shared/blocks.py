"""Blocks of statements, converted to a language's nodes, with loops over tiles."""

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
    """A loop over the tiles of an index. A bound is a text or an element in memory."""

    index: str
    tile: int
    low: str | Element
    high: str | Element
    backwards: bool
    body: tuple[object, ...]


class Blocks(ABC):
    """The blocks of one launch. A language defines the nodes of each statement."""

    def __init__(self, launch: Launch):
        self.launch = launch
        self.values = {v.name: v for v in launch.values}

    def block(self, statements: tuple[Statement, ...], once: bool = False) -> tuple[object, ...]:
        """The nodes of a block, in order. once: whether it is the prologue, where only one of the
        cooperating threads stores."""
        return tuple(node for s in statements for node in self.nodes(s, once))

    @abstractmethod
    def nodes(self, s: Statement, once: bool) -> Iterator[object]:
        """The nodes of a statement. Raises BackendError("emit") if the language does not support
        it."""

    @abstractmethod
    def view(self) -> dict[str, Any]:
        """The values of a launch for the language's templates, in addition to those of all
        languages."""

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
