"""Tests statistics of the ablation on numbers small enough to check by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.search.configuration import USUAL
from benchmarks.search.statistics import (
    area,
    best_known,
    best_so_far,
    interval,
    reached,
    summary,
    table,
    variation,
)


def row(configuration, curve, kernel="k", seed=1, evaluations=4):
    us = curve[-1][1] if curve else None
    return {
        "configuration": configuration,
        "kernel": kernel,
        "seed": seed,
        "evaluations": evaluations,
        "curve": curve,
        "us": us,
    }


def test_the_best_so_far_holds_between_gains_and_before_the_first_correct_one():
    found = best_so_far(row("a", [[2, 8.0], [4, 2.0]]))
    assert found.tolist() == [8.0, 8.0, 8.0, 2.0]
    assert best_so_far(row("a", [[1, 3.0]])).tolist() == [3.0] * 4


def test_the_area_is_the_mean_logarithm():
    curve = [[1, 8.0], [3, 4.0], [4, 2.0]]
    assert area(row("a", curve), 2.0) == pytest.approx(np.log(2) * (2 + 2 + 1 + 0) / 4)
    assert area(row("a", [[1, 2.0]]), 2.0) == 0


def test_near_the_best_is_the_first_evaluation_within_five_percent():
    assert reached(row("a", [[1, 8.0], [3, 2.1], [4, 2.0]]), 2.0) == 3
    assert reached(row("a", [[1, 8.0]]), 2.0) == 5


def test_the_best_known_is_of_all_configurations_and_seeds():
    rows = [row("a", [[1, 8.0]]), row("b", [[1, 4.0]], seed=2), row("b", [[1, 9.0]], "other")]
    assert best_known([*rows, row("c", [])]) == {"k": 4.0, "other": 9.0}


ROWS = [
    row(name, [[1, 8.0], [2, us]], kernel, seed)
    for kernel in ("k", "l")
    for seed in (1, 2)
    for name, us in (("good", 2.0), ("bad", 4.0), ("good~step", 2.0 + seed))
]


def test_configurations_are_ranked_within_blocks():
    found = table(ROWS, ["bad", "good"])
    assert [r["configuration"] for r in found["rows"]] == ["good", "bad"]
    assert [r["rank"]["value"] for r in found["rows"]] == [1.0, 2.0]
    assert [r["final"]["value"] for r in found["rows"]] == pytest.approx([1.0, 2.0])
    assert [r["got_near"] for r in found["rows"]] == [1.0, 0.0]
    assert found["wins"]["good"]["bad"] == 1.0 and found["wins"]["bad"]["good"] == 0.0


def test_final_times_stand_beside_those_of_the_baseline_in_the_same_blocks():
    rows = [row("tpe", [[1, 8.0], [2, 4.0]]), row("tpe", [[1, 8.0]], "l")]
    rows += [row("good", [[1, 8.0], [2, 2.0]]), row("good", [[1, 8.0], [3, 2.0]], "l")]
    over = {r["configuration"]: r["over"]["value"] for r in table(rows, ["tpe", "good"])["rows"]}
    assert over == pytest.approx({"tpe": 1.0, "good": (0.5 * 0.25) ** 0.5})
    assert all(r["over"] is None for r in table(ROWS, ["bad", "good"])["rows"])


def test_only_blocks_that_all_have_run_are_compared():
    alone = row("good", [[1, 1.0]], "k", 3)
    more = [*ROWS, alone, row("bad", [], "k", 4), row("good", [[1, 2.0]], "k", 4)]
    assert len(table(more, ["bad", "good"])["blocks"]) == 4
    assert table(more, ["bad", "never"]) == {"blocks": [], "rows": [], "wins": {}}


def test_a_variation_stands_beside_what_it_varies():
    found = variation(ROWS, "good~step", "good")
    assert found["blocks"] == 4 and found["wins"] == 0.0
    assert found["final"]["value"] == pytest.approx((1.5 * 2.0) ** 0.5)
    assert found["area"]["low"] > 0


def test_the_summary_holds_policies_and_variations_apart():
    found = summary(ROWS)
    assert [r["configuration"] for r in found["policies"]["rows"]] == ["good", "bad"]
    assert [v["configuration"] for v in found["variations"]] == ["good~step"]
    assert summary(ROWS) == found == summary(list(reversed(ROWS)))


def test_the_usual_search_stands_among_the_policies_too():
    rows = [{**r, "configuration": str(USUAL)} for r in ROWS if r["configuration"] == "good"]
    found = summary([*ROWS, *rows])
    assert {r["configuration"] for r in found["policies"]["rows"]} == {"good", "bad", str(USUAL)}


def test_a_configuration_whose_base_was_not_run_stands_among_the_policies():
    rows = [{**r, "configuration": "islands~rewrite"} for r in ROWS if r["configuration"] == "good"]
    found = summary([*ROWS, *rows])
    assert "islands~rewrite" in {r["configuration"] for r in found["policies"]["rows"]}
    assert "islands~rewrite" not in {v["configuration"] for v in found["variations"]}


def test_rows_that_found_nothing_correct_are_counted():
    assert summary([*ROWS, row("bad", [], "k", 9)])["failed"] == 1


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=12))
def test_an_interval_holds_the_mean_and_is_the_same_again(values):
    data = np.array(values)
    low, high = interval(data, np.mean)
    assert low - 1e-9 <= data.mean() <= high + 1e-9 or np.ptp(data) > 0
    assert data.min() - 1e-9 <= low <= high <= data.max() + 1e-9
    assert interval(data, np.mean) == (low, high)


def test_an_interval_is_as_wide_as_theory_says():
    data = np.random.default_rng(0).normal(0, 1, 400)
    low, high = interval(data, np.mean)
    assert (high - low) == pytest.approx(2 * 1.96 * data.std() / 20, rel=0.1)
