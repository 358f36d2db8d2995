"""A scale covers its values, with equal steps for equal factors."""

import pytest

from search.report.scale import scale_for, spread


def test_equal_factors_are_equally_far_apart():
    scale = scale_for([1, 100], 300, 0)
    assert scale(1) - scale(10) == pytest.approx(scale(10) - scale(100))
    assert 300 > scale(1) > scale(100) > 0


def test_a_value_outside_stays_on_the_paper():
    scale = scale_for([1, 100], 300, 0)
    assert (scale(0.001), scale(1e6)) == (300, 0)


@pytest.mark.parametrize("values", [[7], [7, 7], [93.9, 94.1], [1, 3000], [2e-3, 5e6]])
def test_there_are_marks_and_all_are_inside(values):
    scale = scale_for(values, 300, 0)
    marks = scale.marks()
    assert list(marks) == sorted(set(marks))
    assert all(scale.low <= mark <= scale.high for mark in marks)
    assert len(marks) >= (1 if max(values) > 1.3 * min(values) else 0)


def test_labels_are_spread_and_keep_their_order():
    placed = spread([100, 101, 40, 102], 17)
    assert placed[2] < placed[0] < placed[1] < placed[3]
    gaps = [b - a for a, b in zip(sorted(placed), sorted(placed)[1:])]
    assert all(gap > 16 for gap in gaps)
    assert placed[2] == 40
