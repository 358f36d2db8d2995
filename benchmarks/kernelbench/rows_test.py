"""Tests that each problem has one row, and that failures are counted."""

import json

from benchmarks.kernelbench.rows import put, summary, write


def row(number, level=1, **facts):
    known = {"level": level, "number": number, "problem": f"{number}_P", "degenerate": ""}
    took = {"import_s": 1.0, "schedule_s": 0.6, "lower_s": 0.1}
    return known | took | {"correct": True, "kernels": 2, "lowered": 2} | facts


def test_a_row_takes_the_place_of_the_same_problem():
    rows = [row(1), row(1, level=2)]
    put(rows, row(1, kernels=5))
    assert [(r["level"], r["kernels"]) for r in rows] == [(2, 2), (1, 5)]


def test_failures_are_counted_by_stage_and_never_dropped():
    rows = [
        row(1),
        row(2, correct=False, stage="build"),
        row(3, level=2, degenerate="constant"),
        {
            "level": 2,
            "number": 4,
            "problem": "4_P",
            "degenerate": "",
            "correct": False,
            "stage": "import",
        },
    ]
    found = summary(rows)
    assert list(found) == ["level 1", "level 2", "all"]
    everything = found["all"]
    assert (everything["problems"], everything["correct"]) == (4, 2)
    assert (everything["not_degenerate"], everything["correct_not_degenerate"]) == (3, 1)
    assert everything["failed_at"] == {"import": 1, "build": 1}
    assert everything["kernels"] == 2 and everything["lower_ms_per_kernel"] == 50.0
    assert everything["schedule_ms_per_kernel"] == 300.0


def test_a_file_is_in_the_order_of_problems(tmp_path):
    file = tmp_path / "below" / "r.json"
    write(file, {"command": "c"}, [row(2), row(1), row(1, level=0)])
    held = json.loads(file.read_text())
    assert [(r["level"], r["number"]) for r in held["rows"]] == [(0, 1), (1, 1), (1, 2)]
    assert held["command"] == "c" and held["summary"]["all"]["correct"] == 3
