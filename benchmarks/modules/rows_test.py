"""Tests rows: when they are complete, their summary, and their text."""

import pytest

from benchmarks.modules.rows import done, line, put, summary, words

RIGHT = {
    "module": "lstm",
    "correct": True,
    "us": 10.0,
    "steps": 3,
    "own_kernels_only": True,
    "baselines_us": {"eager": 20.0, "compile": 10.0},
    "failures": {"max_autotune": "no"},
    "speedup": 1.0,
    "speedups": {"eager": 2.0, "compile": 1.0},
}
WRONG = {"module": "resnet18", "correct": False, "stage": "check", "reason": "off"}
ABSENT = {"module": "vit_layer", "correct": False, "not_run": "package transformers missing"}


def test_a_row_is_done_when_all_baselines_are_raced():
    assert done(RIGHT, ["compile", "max_autotune"])
    assert not done(RIGHT, ["compile", "reduce_overhead"])
    assert done(WRONG, ["compile"])
    assert not done(ABSENT, []) and not done(None, [])


def test_a_row_takes_the_place_of_the_same_modules():
    rows = [WRONG, RIGHT]
    put(rows, {**RIGHT, "us": 5.0})
    assert [r["module"] for r in rows] == ["resnet18", "lstm"] and rows[1]["us"] == 5.0


def test_the_summary_counts_what_is_wrong_and_what_did_not_run():
    faster = {**RIGHT, "module": "bert_layer", "speedup": 4.0, "speedups": {"eager": 4.0}}
    faster["searched"] = {"correct": True, "us": 1.0, "speedup": 9.0}
    found = summary([RIGHT, faster, WRONG, ABSENT])
    assert (found["modules"], found["run"], found["correct"]) == (20, 3, 2)
    assert found["before_search"]["geometric_mean"] == pytest.approx(2.0)
    assert found["before_search"]["min"] == 1.0 and found["before_search"]["fast_1"] == 0.5
    assert found["over"]["compile"]["raced"] == 1
    assert found["searched"] == found["correct_after_search"] == 1
    assert "2 of 20 modules correct, 3 run" in words(found)
    assert "after search" in words(found)
    assert summary([WRONG])["before_search"] is None


def test_a_line_says_why_a_row_has_no_time():
    assert "FAILED at check: off" in line(WRONG)
    assert "not run: package transformers missing" in line(ABSENT)
    assert "10.0 us by 3 steps; over eager 2.00, compile 1.00" in line(RIGHT)
    searched = {**RIGHT, "searched": {"correct": False, "reason": "off"}}
    assert "searched: WRONG: off" in line(searched)
