"""Tests that the table of a race between backends matches its rows."""

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


def test_kernels_built_elsewhere_stand_beside_eager_and_the_bound():
    """With three languages, the ratio is that of the first to the last."""
    row = {
        "kernel": "a",
        "sizes": {"M": 3},
        "roofline_us": 0.5,
        "one": {"us": 20.0},
        "other": {"us": 12.0},
        "last": {"us": 16.0},
        "eager": {"failure": "the clocks differ"},
        "reduce_overhead": {"us": 18.0},
    }
    large = {**row, "library": {"us": 8.0, "function": "f"}}
    del large["eager"], large["reduce_overhead"]
    made = table(
        RESULT
        | {
            "languages": ["one", "other", "last"],
            "summary": {
                "other": {"geometric_mean": 1.66, "min": 1.66, "failed": []},
                "last": {"geometric_mean": 1.25, "min": 1.25, "failed": []},
            },
            "built_by": {"last": "compiler 1"},
            "schedules": "chip2",
            "checked": "check and tuning",
            "rows": [row, large],
        }
    )
    assert (
        "| kernel | sizes | one | other | last | eager | reduce_overhead | roofline | ratio |"
        in made
    )
    assert "| a | M=3 | 20.0 | 12.0 | 16.0 | failed | 18.0 | 0.50 | 1.25 |" in made
    assert "at all check and tuning sizes" in made
    assert "- `a` in `eager`: the clocks differ." in made
    assert "| a | M=3 | 20.0 | 12.0 | 16.0 | 8.0 | 0.50 | 0.50 | `f` |" in made
    assert "one over last" in made and "`last` by compiler 1" in made and "of `chip2`" in made
