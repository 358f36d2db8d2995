"""Held-out shapes are drawn between and beyond the tuned ones, and depend only on the seed."""

import pytest

from search.core.held_out import HeldOut, drawn, gain, held_out_words
from search.core.workload import WeightedShape

SHAPES = (WeightedShape({"B": 64, "L": 100}), WeightedShape({"B": 2048, "L": 100}))


def test_they_are_drawn_around_the_tuned_ones_by_the_seed():
    found = drawn(SHAPES, 40, 1, lambda sizes: True)
    assert len(found) == 40 and found == drawn(SHAPES, 40, 1, lambda sizes: True)
    assert found != drawn(SHAPES, 40, 2, lambda sizes: True)
    batches = [sizes["B"] for sizes in found]
    assert min(batches) < 64 and max(batches) > 2048
    assert all(32 <= b <= 4097 for b in batches)
    assert all(50 <= sizes["L"] <= 201 for sizes in found)
    assert sum(b <= 362 for b in batches) > 10, "as many below the middle in the logarithm"


def test_half_of_them_are_odd_in_all_sizes():
    found = drawn(SHAPES, 10, 3, lambda sizes: True)
    assert sum(all(number % 2 for number in sizes.values()) for sizes in found) in range(5, 9)


def test_none_is_tuned_twice_or_impossible():
    narrow = (WeightedShape({"B": 1}), WeightedShape({"B": 2}))
    found = drawn(narrow, 10, 0, lambda sizes: sizes["B"] < 5)
    assert sorted(sizes["B"] for sizes in found) == [3, 4]


ROWS = (
    HeldOut({"B": 3}, 1, 2.0, 4.0, 2.0, 8.0, True),
    HeldOut({"B": 5}, 0, 3.0, 3.0, 1.5, None, False),
    HeldOut({"B": 7}, 1, None, 9.0, 9.0, 9.0, True, "check: output `y` is off"),
)


def test_gains_are_means_of_factors_where_both_work():
    assert gain(ROWS, "single_us") == pytest.approx(2**0.5)
    assert gain(ROWS, "first_us") == pytest.approx(4.0)
    assert gain(ROWS[2:], "first_us") is None


def test_each_says_whether_it_is_correct_and_where_that_was_seen():
    said = [row.said for row in ROWS]
    assert said == ["correct", "correct at smaller sizes", "check: output `y` is off"]
    assert held_out_words(ROWS).startswith("2 of 3 correct; ")
    assert held_out_words(()) == ""
