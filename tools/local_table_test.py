"""Tests that the table of a local race matches its rows."""

from __future__ import annotations

from tools.results_table import table

RESULT = {
    "command": "python3 -m benchmarks.local --target=chip --out=starter.json",
    "date": "2026-11-24",
    "machine": "A processor, 2 cores",
    "versions": {"torch": "2"},
    "threads": 2,
    "rounds": 3,
    "summary": {
        "rows": 1,
        "faster": 1,
        "geometric_mean": 1.999,
        "median": 1.999,
        "min": 1.999,
        "max": 1.999,
    },
    "rows": [
        {
            "kernel": "one",
            "sizes": {"M": 3},
            "schedule": "record",
            "us": 10.0,
            "baselines_us": {"eager": 19.99},
            "rounds_us": {"ours": [9.0, 30.0, 10.0], "eager": [19.99, 19.0, 21.0]},
            "fastest": "eager",
            "speedup": 1.999,
        }
    ],
}


def test_a_row_has_the_median_round_and_how_far_rounds_are_apart():
    made = table(RESULT)
    assert "| one | M=3 | 10 (9-30) | 20 (19-21) | eager | 1.99 | record |" in made
    assert made.startswith("`python3 -m benchmarks.local")
    assert "geometric mean 1.99" in made and "faster on 1 of 1" in made
