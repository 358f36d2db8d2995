"""Tests that result files keep rows, and that summaries never hide a failure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import results
from benchmarks.results import missing, placeless, put, read, settle, summary, write

FILES = sorted((Path(results.__file__).parent / "results").rglob("*.json"))


def row(us=10.0, theirs=20.0, dtype="f16", kernel="k", correct=True):
    made = {
        "kernel": kernel,
        "dtype": dtype,
        "shape": {"M": 1},
        "us": us if correct else None,
        "baselines_us": {"eager": theirs, "compile": None},
        "failures": {"compile": "ill"},
        "roofline_us": 5.0,
        "correct": correct,
    }
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


def test_a_file_is_written_without_the_folders_of_the_machine(tmp_path):
    file = tmp_path / "r.json"
    reason = f"{tmp_path}/softmax_0/kernel.py:12:0: no\nsee https://x.org/a/b, bazel/y.py and 1/2"
    write(file, {"command": f"x --out={file}"}, [{**row(), "reasons": [reason]}])
    made = read(file)
    assert made["command"] == "x --out=r.json"
    (said,) = made["rows"][0]["reasons"]
    assert said == "kernel.py:12:0: no\nsee https://x.org/a/b, bazel/y.py and 1/2"
    assert str(tmp_path) not in file.read_text()


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_no_result_file_names_a_folder_of_a_machine(file):
    held = json.loads(file.read_text(encoding="utf-8"))
    assert placeless(held) == held
