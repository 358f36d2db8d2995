"""Places of elements in arrays whose last axis is contiguous, as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from backends.shared.texts import size, span
from ir.nest.nest import Slice, Tile
from ir.spec import Expr, Number

Terms = tuple[tuple[str, int], ...]  # (index, coefficient)


@dataclass(frozen=True, slots=True)
class Count:
    """The number of elements of an index's tile that are in bounds."""

    index: str


@dataclass(frozen=True, slots=True)
class At:
    """A position along an axis: the sum of its parts."""

    origins: Terms = ()  # starts of the tiles of indices
    offset: str = ""  # empty: none
    places: Terms = ()  # positions within tiles; an empty index means the only element of its tile

    @property
    def several(self) -> bool:
        """Whether its text is more than one word."""
        parts = (*self.origins, *self.places)
        alone = len(parts) + bool(self.offset) < 2 and all(by == 1 for _, by in parts)
        return not alone or " " in self.offset

    @property
    def zero(self) -> bool:
        """Whether it is position 0."""
        return not self.origins and self.offset in ("", "0") and self.places in ((), (("", 1),))


@dataclass(frozen=True, slots=True)
class Row:
    """A position that a value contains."""

    element: Element
    zero = False

    @property
    def several(self) -> bool:
        """Whether its text is more than one word."""
        return self.element.place.several


@dataclass(frozen=True, slots=True)
class Nested:
    """`inner * extent + last`: the place in an array with one more axis."""

    inner: Place
    extent: str | Count
    last: At | Row | None  # None: position 0
    several = True
    zero = False

    @property
    def compound(self) -> bool:
        """Whether the text of the extent is more than one word."""
        return isinstance(self.extent, str) and " " in self.extent


Place = At | Row | Nested


@dataclass(frozen=True, slots=True)
class Element:
    """An element of an array."""

    array: str
    place: Place
    in_memory: bool = False  # whether it is in a global tensor; else in a tile


@dataclass(frozen=True, slots=True)
class Position:
    """The positions along one dimension of a global tensor that a statement loads or stores."""

    start: At = At()
    axis: str = ""  # axis of the value; empty: there is one position
    extent: str | Count = ""  # number of positions along the axis
    step: int = 1
    rows: Tile | None = None  # value that contains the positions, in place of `start`


def affine(terms: Terms, offset: Expr) -> At:
    """The sum of the tile starts of indices, each with its coefficient, and an offset."""
    return At(terms, "" if terms and offset == Number(0) else size(offset))


def position(one: Slice, extents: Mapping[str, str]) -> Position:
    """A dimension of a region. extents: of each axis of the value, as texts."""
    if one.axis is None:
        return Position(rows=one.rows) if one.rows else Position(affine(one.terms, one.offset))
    if one.rows is not None:
        return Position(axis=one.axis, extent=Count(one.axis), rows=one.rows)
    if one.whole:
        return Position(At(offset=size(one.offset)), one.axis, extents[one.axis], one.step)
    start = affine(one.terms, one.offset)
    if len(one.terms) == 1 and one.axis == one.terms[0][0]:
        return Position(start, one.axis, Count(one.axis), one.step)
    return Position(start, one.axis, span(one.terms))


def flat(positions: Sequence[At | Row], extents: Sequence[str | Count]) -> Place:
    """The place of an element. positions, extents: of each axis, outermost first."""
    found: Place = At()
    for position, extent in zip(positions, extents, strict=True):
        if found.zero:
            found = position
        else:
            found = Nested(found, extent, None if position.zero else position)
    return found
