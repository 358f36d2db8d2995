"""Tests the tables of a suite: every problem is counted, and each that failed is named."""

from benchmarks.kernelbench.race_rows import summary
from tools.results_table import table


def row(number, **facts):
    known = {
        "level": 1,
        "number": number,
        "problem": f"{number}_P",
        "degenerate": "",
        "correct": True,
        "us": 10.0,
        "baselines_us": {"eager": 20.0, "compile": 15.0},
        "speedups": {"eager": 2.0, "compile": 1.5},
        "speedup": 1.5,
        "collapses": False,
        "rounded": [],
        "suite": {"trials": 5, "passed": 5, "passed_with_f32": 5},
        "suite_passed": True,
        "own_kernels_only": True,
        "rel_err": 1e-7,
        "reference_rel_err": None,
    }
    return known | facts


def result(*rows):
    head = {
        "command": "c",
        "date": "d",
        "machine": "a chip",
        "driver": "1",
        "suite": "s",
        "versions": {"torch": "2"},
        "sizes": "the problems' own",
    }
    return head | {"summary": summary(rows), "rows": list(rows)}


TF32 = row(
    2,
    rounded=["convolution: tf32"],
    suite_passed=False,
    collapses=True,
    degenerate="constant",
    suite={"trials": 5, "passed": 1, "passed_with_f32": 3},
    plain_kernels=["k"],
)
WRONG = row(3, correct=False, us=None, stage="build", reason="no\n  " + "x" * 300)


def test_levels_rows_and_failures():
    text = table(result(row(1), TF32, WRONG))
    assert "`c`, d, a chip, driver 1, torch 2; sizes: the problems' own." in text
    assert "| level 1 | 3 | 2 | 2 | 3 | build 1 | 2.00 | 1.50 | 1.50 | 100% | 100% |" in text
    assert "| 1 | 1_P | 10.0 | 20.0 | 15.0 | 2.00 | 1.50 | 1.50 | 1.0e-07 | - |  |" in text
    assert "degenerate: constant, its equations shrink, convolution: tf32, suite 1/5, " in text
    assert "- level 1, 3_P, build: no xxx" in text and "3_P | " not in text


def test_a_file_of_failures_has_no_rows():
    text = table(result(WRONG))
    assert "| all | 1 | 0 | 1 | 1 | build 1 | - | - | - | - | - |" in text


def test_a_mode_that_some_row_has_is_a_column():
    text = table(result(row(1), row(2, baselines_us={"eager": 20.0, "max_autotune": 12.0})))
    assert "| us | eager | compile | max-autotune | over eager |" in text
    assert "| 1 | 2_P | 10.0 | 20.0 |  | 12.0 | 2.00 |" in text
