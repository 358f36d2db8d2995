"""Tests the table of searches for the kernels of contests."""

from tools.results_table import table
from tools.searches_table import searches

FOUND = {
    "contest": "matmul_bf16",
    "shape": {"M": 8, "N": 4},
    "backend": "cutedsl",
    "evaluations": 7,
    "first_us": 30.0,
    "best_us": 20.0,
    "roofline_us": 15.0,
    "by_hand_us": 19.0,
    "baseline_us": 25.0,
    "time_kind": "measured",
    "correct_by": "device",
    "device": "D",
    "toolchain": "t 1",
    "schedule": "schedule(matmul_bf16)\ntile(m, size=8)\ntile(n, size=4)\n",
}
LOST = {"contest": "conv", "reason": "no candidate is correct", "device": "D", "toolchain": "t 1"}
RESULT = {"command": "python3 -m x", "date": "2026-11-27", "rows": [FOUND, LOST]}


def test_a_row_has_what_was_found_beside_what_is_known():
    text = "\n\n".join(searches(RESULT))
    row = "| matmul_bf16 | M=8 N=4 | cutedsl | 7 | 30.0 | 20.0 | 19.0 | 0.95 | 25.0 | 1.25 | 0.75 |"
    assert row in text and "Times measured" in text and "right by device" in text
    assert "- matmul_bf16: `tile(m, size=8); tile(n, size=4)`" in text
    assert "- conv: no candidate is correct." in text


def test_what_is_not_known_has_no_number():
    bare = {k: v for k, v in FOUND.items() if k not in ("by_hand_us", "baseline_us")}
    text = "\n\n".join(searches({**RESULT, "rows": [bare]}))
    assert "| 20.0 | - | - | - | - | 0.75 |" in text and "What failed" not in text


def test_what_was_found_before_has_columns_where_there_is_some():
    before, failed = FOUND | {"before_us": 21.0}, FOUND | {"first_us": None}
    text = searches({**RESULT, "rows": [before, failed]})[1]
    assert "found before, us | before / found" in text
    assert (
        "| 0.75 | 21.0 | 1.05 |" in text
        and "| 7 | - | 20.0 |" in text
        and "| 0.75 | - | - |" in text
    )


def test_a_result_file_of_searches_is_told_by_its_rows():
    assert table(RESULT) == "\n\n".join(searches(RESULT)) + "\n"
