"""Tests that the tables of a ranking match its rows."""

from __future__ import annotations

import pytest

from benchmarks.rank_table import summary
from tools.ranking_table import ranking, short
from tools.results_table import table


def row(us, *guesses, kernel="one", correct=True, reason=""):
    modelled, guessed, estimated = guesses or (us, us, us)
    return {
        "kernel": kernel,
        "backend": "triton",
        "schedule": "s",
        "correct": correct,
        "reason": reason,
        "measured_us": us,
        "modelled_us": modelled,
        "guessed_us": guessed,
        "estimated_us": estimated,
    }


def result(*rows):
    return {
        "command": "python3 -m x --out=/some/place/y.json",
        "date": "2026-11-21",
        "machine": "Chip",
        "driver": "1.2",
        "versions": {"torch": "2"},
        "clocks_mhz": {"sm": 1980, "memory": 3201},
        "summary": summary(rows),
        "rows": list(rows),
    }


def test_each_kernel_has_rho_and_regret_of_each_guess():
    """Regrets are rounded up, gains are truncated."""
    made = table(result(row(1.001, 1, 2, 1), row(2.0, 2, 1, 2), row(4.0, 3, 3, 3)))
    assert "| one | 3 | 0 | 0 | 1.00, 1.00 | 0.50, 2.00 | 1.00, 1.00 | 1.99 |" in made
    assert "| guessed | 0.50 | 0.50 | 2.00 |" in made and "| random | - | - | 1.99 |" in made
    assert made.startswith("`python3 -m x --out=y.json`, 2026-11-21, Chip")


def test_what_failed_and_what_was_not_timed_is_counted():
    rows = (
        row(1.0),
        row(2.0),
        row(None, correct=False, reason="build: it needs 8 bytes"),
        row(None, correct=False, reason="build: it needs 9 bytes"),
        row(None, kernel="two", correct=None, reason="not timed: out of time"),
    )
    made = "\n".join(ranking(result(*rows)))
    assert "| one | 2 | 2 | 0 |" in made and "| two | 0 | 0 | 1 | - | - | - | - |" in made
    assert "2 schedules timed, 2 failed." in made
    assert "- one, 2: build: it needs 8 bytes" in made and "- two" not in made


def test_a_file_that_was_modelled_again_says_so():
    found = result(row(1.0), row(2.0) | {"not_remodelled": "no such verb"})
    found |= {"measured_by": found.pop("command"), "modelled_by": "python3 -m x --again"}
    made = table(found)
    assert made.startswith("`python3 -m x --out=y.json`, then `python3 -m x --again`, 2026-11-21")
    assert "2 schedules timed, 0 failed. 1 no longer lower" in made


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (
            "CUDA error: misaligned address\nSearch for it\nCompile with x for details",
            "CUDA error: misaligned address",
        ),
        (
            "build: CompilationError: at 4:1: ... x\n   y\n   ^\nK >= 16",
            "build: CompilationError: K >= 16",
        ),
        (
            "build: failed\n/tmp/a/kernel.py:2:0: error: bad  ... <64x64|\nFailures have been detected",
            "build: failed: kernel.py:2:0: error: bad",
        ),
        ("y" * 300, "y" * 160 + "..."),
    ],
)
def test_a_reason_is_one_line_without_folders(reason, said):
    assert short(reason) == said
