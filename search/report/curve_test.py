"""The curve shows each trial at its position, and the best so far as a falling staircase."""

import re
from dataclasses import replace

import pytest

from search.report.curve import NARROW, WIDE, curve
from search.report.page import EvaluationRow
from search.report.testing import NOTHING, RESULT


def drawn():
    made = curve(RESULT)
    assert made is not None
    return made


def test_the_best_so_far_falls_with_each_gain_and_ends_at_the_right():
    made = drawn()
    heights = [float(y) for y in re.findall(r"(?:M[\d.]+ |V)([\d.]+)", made.path)]
    assert len(heights) == 3 and heights == sorted(heights)
    assert made.path.endswith(f"H{made.right}")


def test_gains_others_and_failures_are_told_apart():
    made = drawn()
    assert [dot.gain for dot in made.dots] == [True, False, True, False, True]
    assert [dot.hint for dot in made.failures][1] == "#6, mutate: build: no such register"
    assert made.dots[-1].hint == "#5, crossover: 20.0 µs simulated"


@pytest.mark.parametrize("sheet", (WIDE, NARROW), ids=("wide", "narrow"))
def test_everything_is_on_the_paper_and_time_goes_up(sheet):
    made = curve(RESULT, sheet)
    assert (made.width, made.right) == (sheet.width, sheet.width - sheet.right)
    assert len(made.across) <= sheet.marks
    for dot in (*made.dots, *made.failures):
        assert made.left <= dot.x <= made.right and 0 <= dot.y <= made.height
    at = {level.name: level.y for level in made.levels}
    assert at["plain"] < at["first"] < at["best"] < at["roofline"] < made.bottom


def test_labels_of_levels_do_not_overlap():
    labels = sorted(level.label_y for level in drawn().levels)
    assert all(b - a > 14 for a, b in zip(labels, labels[1:]))


def test_what_is_far_slower_than_all_levels_stands_at_the_upper_edge():
    slow = EvaluationRow(8, "mutate", 1e6)
    made = curve(replace(RESULT, trials=(*RESULT.trials, slow)))
    assert made.beyond and made.dots[-1].beyond and made.dots[-1].y == WIDE.top
    assert [level.y for level in made.levels if level.y <= WIDE.top] == []
    assert not drawn().beyond


def test_there_is_no_curve_where_nothing_was_correct():
    assert curve(NOTHING) is None
