"""Tests that the tables of a coverage count every problem, and name each that failed."""

from benchmarks.kernelbench.rows import summary
from tools.coverage_table import coverage
from tools.results_table import table


def row(number, **facts):
    known = {"level": 1, "number": number, "problem": f"{number}_P", "degenerate": ""}
    done = {"correct": True, "correct_by": "simulator", "kernels": 3, "import_s": 0.25}
    return known | done | {"schedule_s": 0.2, "lower_s": 0.05, "lowered": 2} | facts


def result(*rows, reduced=None):
    head = {"command": "c", "date": "d", "machine": "a chip", "versions": {"torch": "2"}}
    return head | {"reduced": reduced, "summary": summary(rows), "rows": list(rows)}


WRONG = row(2, correct=False, stage="lower", reason="no\n  " + "x" * 300, degenerate="constant")


def test_levels_say_how_many_are_right_and_what_it_took():
    (origin, levels, failures) = coverage(result(row(1), WRONG))
    assert "`c`, d, a chip, by the simulator, at their own sizes; torch 2." == origin
    assert "| level 1 | 2 | 1 | 1 of 1 | lower 1 | 3 | 0.2 | 100 | 25.0 |" in levels
    assert "- level 1, 2_P, lower: no xxx" in failures and len(failures.splitlines()[-1]) < 200


def test_reduced_sizes_are_said():
    made = coverage(result(row(1), reduced={"elements": 200000, "work": 20000000}))
    assert "up to 200,000 elements" in made[0] and len(made) == 2


def test_the_page_takes_such_files():
    assert "| all | 1 | 1 | 1 of 1 | - |" in table(result(row(1)))
