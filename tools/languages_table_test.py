"""The table of a race between backends says what its rows say."""

from __future__ import annotations

from tools.results_table import table

RESULT = {
    "command": "python3 -m benchmarks.languages --target=chip --out=languages.json",
    "date": "2026-11-25",
    "machine": "A chip",
    "driver": "1",
    "versions": {"torch": "2"},
    "languages": ["one", "other"],
    "summary": {"other": {"geometric_mean": 1.999, "min": 1.999, "failed": ["b"]}},
    "rows": [
        {
            "kernel": "a",
            "sizes": {"M": 3},
            "one": {"us": 19.99, "registers": 8.0, "shared_bytes": 0.0},
            "other": {"us": 10.0, "registers": 9.0, "shared_bytes": 128.0},
        },
        {"kernel": "b", "sizes": {"M": 3}, "one": {"us": 2.0}, "other": {"failure": "it spills"}},
    ],
}


def test_a_row_has_both_times_and_a_ratio_that_is_not_rounded_up():
    made = table(RESULT)
    assert "| a | M=3 | 20.0 | 10.0 | 1.99 | 8 / 9 | 0 / 128 |" in made
    assert "geometric mean 1.99, least 1.99" in made


def test_a_failure_is_shown():
    made = table(RESULT)
    assert "| b | M=3 | 2.0 | failed | - | 0 / 0 | 0 / 0 |" in made
    assert "- `b` in `other`: it spills." in made
