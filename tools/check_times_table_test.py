"""Tests that the table of check times matches its rows."""

from __future__ import annotations

from tools.results_table import table

RESULT = {
    "command": "python3 -m benchmarks.check_times --target=chip --out=check_times.json",
    "date": "2026-11-25",
    "machine": "A processor",
    "versions": {"python": "3"},
    "toolchains": ["compiler 1"],
    "rounds_of_checks": 3,
    "checked_through": ["one", "other"],
    "summary": {"other": {"all": 1.501, "geometric_mean": 1.2, "max": 1.501, "failed": ["b"]}},
    "rows": [
        {
            "kernel": "a",
            "checks": [{"M": 3}, {"M": 7}],
            "one": {"cpu_s": 2.0},
            "other": {"cpu_s": 3.002},
        },
        {
            "kernel": "b",
            "checks": [{"M": 3}],
            "one": {"cpu_s": 1.0},
            "other": {"failure": "check"},
        },
    ],
}


def test_a_row_has_both_times_and_a_ratio_that_is_rounded_up():
    made = table(RESULT)
    assert "| a | 2 | 2.00 | 3.00 | 1.51 |" in made
    assert "`other` takes 1.51 of `one`'s time for all kernels together" in made
    assert "geometric mean 1.20, most 1.51." in made


def test_a_failure_has_no_ratio():
    assert "| b | 1 | 1.00 | failed | - |" in table(RESULT)
