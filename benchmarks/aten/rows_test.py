"""Tests that rows are ordered and summarized."""

import json

from benchmarks.aten.rows import summary, write


def row(operator, dtype="f32", verdict="pass"):
    return {"operator": operator, "dtype": dtype, "verdict": verdict}


def test_files_are_in_order(tmp_path):
    rows = [row("mul"), row("_softmax"), row("add"), row("add", "bf16", "not expressible")]
    write(tmp_path / "x" / "r.json", {"command": "c"}, rows)
    found = json.loads((tmp_path / "x" / "r.json").read_text())
    assert [(r["operator"], r["dtype"]) for r in found["rows"]] == [
        ("add", "f32"),
        ("add", "bf16"),
        ("mul", "f32"),
        ("_softmax", "f32"),
    ]
    assert (
        found["summary"]
        == summary(found["rows"])
        == {
            "all": {"rows": 4, "pass": 3, "not expressible": 1},
            "bf16": {"rows": 1, "not expressible": 1},
            "f32": {"rows": 3, "pass": 3},
            "operators": 3,
            "operators_passed": 2,
        }
    )
