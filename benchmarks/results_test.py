"""Result files: rows are kept, summaries never hide a failure."""

from __future__ import annotations

import json

import pytest

from benchmarks.results import missing, put, read, settle, summary, write


def row(us=10.0, theirs=20.0, dtype="f16", kernel="k", correct=True):
    made = {"kernel": kernel, "dtype": dtype, "shape": {"M": 1}, "us": us if correct else None,
            "baselines_us": {"eager": theirs, "compile": None}, "failures": {"compile": "ill"},
            "roofline_us": 5.0, "correct": correct}  # fmt: skip
    settle(made)
    return made


def test_a_row_is_settled_against_the_fastest():
    made = row()
    assert (made["fastest"], made["speedup"], made["roofline_share"]) == ("eager", 2.0, 0.5)
    assert row(correct=False)["speedup"] is None
    unknown = {**row(), "roofline_us": None}
    settle(unknown)
    assert (unknown["speedup"], unknown["roofline_share"]) == (2.0, None)


def test_a_summary_counts_failures_and_gives_each_dtype():
    rows = [row(), row(theirs=5.0), row(dtype="f32", theirs=80.0), row(correct=False)]
    found = summary(rows)
    assert found["all"]["geometric_mean"] == pytest.approx((2 * 0.5 * 8) ** (1 / 3))
    assert found["all"]["median"] == 2.0 and found["all"]["min"] == 0.5
    assert (found["all"]["rows"], found["all"]["raced"], found["all"]["failed"]) == (4, 3, 1)
    assert found["all"]["fast_1"] == 0.5
    assert found["f32"]["median"] == 8.0 and found["f16"]["rows"] == 3


def test_nothing_is_raced_twice_and_a_failure_counts_as_raced():
    assert missing(row(), ["eager", "compile", "max_autotune"]) == ["max_autotune"]
    assert missing(None, ["eager"]) == ["eager"]


def test_a_row_takes_the_place_of_the_same_row(tmp_path):
    rows = [row(), row(dtype="f32")]
    put(rows, row(us=1.0))
    put(rows, row(kernel="other"))
    assert [r["us"] for r in rows] == [1.0, 10.0, 10.0]
    file = tmp_path / "deep" / "r.json"
    assert read(file) == {"rows": []}
    write(file, {"command": "c"}, rows)
    assert read(file)["rows"] == rows
    assert list(json.loads(file.read_text())) == ["command", "summary", "rows"]
