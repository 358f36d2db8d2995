"""Tests the tables of the harness's verdicts: each problem has a line, and each wrong one is
named."""

from benchmarks.kernelbench.harness import summary
from tools.results_table import table

RIGHT = {"compiled": True, "correctness": True, "runtime": 2.0, "ref_runtime": 2.599, "unit": "ms"}
WRONG = {"compiled": True, "correctness": False, "runtime": -1.0, "ref_runtime": -1.0, "why": "off"}


def row(number, **facts):
    return {"level": 1, "problem": f"{number}_P", "number": number, "degenerate": "", **facts}


def result(*rows, **other):
    head = {"command": "c", "date": "d", "machine": "a chip", "driver": "1", "harness": "commit 7"}
    head |= {"suite": "kernelbench_harness", "versions": {"torch": "2"}, **other}
    return head | {"summary": summary(rows), "rows": list(rows)}


def test_a_problem_is_a_line_and_its_speed_up_is_cut():
    text = table(result(row(1, kernels=3, as_is=RIGHT, tf32_off={**RIGHT, "ref_runtime": 4.0})))
    assert "`c`, d, a chip, driver 1, torch 2; KernelBench at commit 7." in text
    assert "| 1 | 1_P | 3 | 2 | 2.599 | 1.29 | 2 | 4 | 2.00 |" in text
    assert "| level 1: 1 | as is | 1 | 1 | 1.29 | 1.29 | 1.29 | 100% |" in text


def test_a_mean_is_not_alone():
    times = {"mean": 2.0, "std": 0.1, "min": 1.9, "max": 2.4, "num_trials": 100}
    text = table(result(row(1, as_is={**RIGHT, "times": times, "ref_times": {}})))
    assert "| 1 | 1_P | - | 2 (1.9 to 2.4) | 2.599 | 1.29 |" in text


def test_what_is_wrong_or_was_not_judged_is_named():
    text = table(result(row(1, as_is=WRONG), row(2, reason="no file: why")))
    assert "| 1 | 1_P | - | wrong | - | - | - | - | - |" in text
    assert "- level 1 `1_P`, as is: off" in text and "- level 1 `2_P`: no file: why" in text
    assert "| level 1: 2 | TF32 off | 0 | 0 | - | - | - | - |" in text


def test_the_runs_of_a_merged_file_are_named():
    text = table(result(row(1, as_is=RIGHT), runs=[{"command": "r", "date": "e", "rows": 1}]))
    assert "The runs: `r`, e. Verdicts" in text
