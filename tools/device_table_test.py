"""Tests the tables of a device suite: each problem has its gain and verdict, each other test its
outcome."""

from tools.results_table import table

SEARCHED = {
    "test": "tests/device/searches_device_test.py::test_a_problem[level1/1_P]",
    "outcome": "passed",
    "command": "python3 -m search.evolve",
    "kernels": 2,
    "first_us": 30.0,
    "best_us": 20.0,
    "gain": 1.5,
    "failures": ["one"],
}
JUDGED = {
    "test": "tests/device/x.py::test_a_solution_passes_the_suites_own_judge[level1/1_P]",
    "outcome": "passed",
    "judge": {"correct": True, "trials": "(5 / 5)", "mean_ms": 0.0234, "reference_mean_ms": 2.7},
}
OTHER = {"test": "tests/device/m.py::test_it[one]", "outcome": "failed", "command": "python3 -m m"}


def result(*rows):
    head = {"command": "c", "date": "d", "machine": "a chip", "driver": "1", "versions": {}}
    return head | {"passed": 2, "failed": 1, "skipped": 0, "rows": list(rows)}


def test_a_problem_is_one_row_with_what_its_judge_says():
    made = table(result(SEARCHED, JUDGED, OTHER))
    assert "2 passed, 1 failed, 0 skipped" in made
    assert "| level1/1_P | 2 | 30.0 | 20.0 | 1.50 | 1 | correct (5 / 5) | 0.0234 | 2.7 |" in made
    assert "| it (one) | failed | `python3 -m m` |" in made


def test_a_mean_has_its_least_and_largest_beside_it():
    judge = {**JUDGED["judge"], "times_ms": {"min": 0.02, "max": 0.05}}
    made = table(result(SEARCHED, {**JUDGED, "judge": judge}))
    assert "| correct (5 / 5) | 0.0234 (0.02 to 0.05) | 2.7 |" in made


def test_what_failed_has_no_figures():
    failed = {"test": SEARCHED["test"], "outcome": "failed"}
    wrong = {**JUDGED, "judge": {**JUDGED["judge"], "correct": False}}
    assert "| level1/1_P | - | - | - | - | - | not correct | 0.0234 | 2.7 |" in table(
        result(failed, wrong)
    )
    assert "| level1/1_P | - | - | - | - | - | - | - | - |" in table(
        result(failed, {**JUDGED, "judge": None})
    )
