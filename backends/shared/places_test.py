"""A place is the row-major index of its positions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.shared.places import (
    At,
    Count,
    Element,
    Nested,
    Position,
    Row,
    affine,
    flat,
    position,
)
from ir.nest.nest import Slice, Tile
from ir.spec import Apply, Number, Size

INDICES = ("a", "b", "c", "d")


def number(place, values):
    """The value of a place. values: of each index within its tile; origins are 100 times that."""
    match place:
        case Nested(inner, extent, last):
            beyond = 0 if last is None else number(last, values)
            return number(inner, values) * int(extent) + beyond
        case At(origins, offset, places):
            parts = [by * 100 * values[i] for i, by in origins]
            parts += [by * values[i] for i, by in places if i]
            return sum(parts) + int(offset or 0)


@given(st.data())
def test_the_last_axis_is_contiguous(data):
    extents = data.draw(st.lists(st.integers(1, 5), max_size=4))
    at = [data.draw(st.integers(0, e - 1)) for e in extents]
    walked = [data.draw(st.booleans()) or bool(i) for i in at]
    positions = [
        At(places=((name if found else "", 1),))
        for name, found in zip(INDICES, walked, strict=False)
    ]
    values = dict(zip(INDICES, at, strict=False))
    found = number(flat(positions, [str(e) for e in extents]), values)
    assert found == (np.ravel_multi_index(at, extents) if extents else 0)


def test_a_start_is_the_sum_of_origins_and_an_offset_that_adds_something():
    assert affine((("p", 2),), Number(0)) == At((("p", 2),))
    assert affine((("p", 2), ("i", 1)), Number(-1)) == At((("p", 2), ("i", 1)), "-1")
    assert affine((), Number(0)) == At(offset="0")


def test_what_needs_brackets_is_known():
    one, sum_of_two = At(places=(("m", 1),)), At((("m", 1),), places=(("m", 1),))
    assert (one.several, sum_of_two.several) == (False, True)
    assert At(offset="H - 1").several and At(places=(("m", 2),)).several
    assert affine((), Apply("sub", (Size("H"), Number(1)))).several
    assert flat((one, one), ("M", Count("k"))).several
    assert Row(Element("ids", sum_of_two)).several and not Row(Element("ids", one)).several
    assert Nested(one, "K + 1", None).compound
    assert not Nested(one, Count("k"), None).compound


def test_the_first_position_adds_nothing():
    first = At(places=(("", 1),))
    assert first.zero and At().zero and At(offset="0").zero
    assert not At(offset="1").zero and not At((("m", 1),)).zero
    assert flat((At(places=(("m", 1),)), first), ("M", "K")) == Nested(
        At(places=(("m", 1),)), "K", None
    )


@pytest.mark.parametrize(
    ("one", "found"),
    [
        (Slice(None, (("m", 1),), Number(2)), Position(At((("m", 1),), "2"))),
        (Slice("m", (("m", 1),), Number(0)), Position(At((("m", 1),)), "m", Count("m"))),
        (
            Slice("p_w", (("p", 2), ("i", 1)), Number(-1)),
            Position(At((("p", 2), ("i", 1)), "-1"), "p_w", "2 * (p_n - 1) + (i_n - 1) + 1"),
        ),
        (
            Slice("k", (("k", 1),), Number(3), step=2, whole=True),
            Position(At(offset="3"), "k", "K", step=2),
        ),
        (
            Slice("l", (("l", 1),), Number(0), rows=Tile("ids")),
            Position(axis="l", extent=Count("l"), rows=Tile("ids")),
        ),
        (Slice(None, (), Number(0), rows=Tile("ids")), Position(rows=Tile("ids"))),
    ],
)
def test_a_dimension_of_a_region_is_a_start_an_axis_and_an_extent(one, found):
    assert position(one, {"k": "K"}) == found
