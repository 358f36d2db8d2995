"""Tests that the tables of modules list each module, and name each that failed or did not run."""

from benchmarks.modules.rows import summary
from tools.results_table import table

RIGHT = {
    "module": "lstm",
    "package": "torch",
    "dtype": "f16",
    "correct": True,
    "steps": 3,
    "us": 10.0,
    "baselines_us": {"eager": 20.0, "compile": 12.999},
    "failures": {},
    "speedup": 1.2999,
    "speedups": {"eager": 2.0, "compile": 1.2999},
    "rel_err": 1e-3,
    "reference_rel_err": 2e-3,
}


def result(*rows):
    head = {"command": "c", "date": "d", "machine": "a chip", "suite": "modules", "driver": "1"}
    return head | {"versions": {"torch": "2"}, "summary": summary(rows), "rows": list(rows)}


def test_a_module_is_a_line_and_its_speed_up_is_cut():
    text = table(result(RIGHT))
    assert "`c`, d, a chip, driver 1, torch 2." in text
    row = "| `lstm` | torch | f16 | 3 | 10.0 | 20.0 | 13.0 | - | - | 1.29 | - | - | 1.0e-03 | 2.0e-03 |"
    assert row in text
    assert "1 of 20 are correct. Over the fastest before a search: geometric mean 1.29 of 1" in text


def test_the_runs_of_a_merged_file_are_named():
    runs = [{"command": "r", "date": "e", "rows": 1}, {"command": "r", "date": "e", "rows": 2}]
    assert "torch 2. The runs: `r`, e (2 of it)." in table({**result(RIGHT), "runs": runs})


def test_what_a_search_found_stands_beside_it():
    searched = {"correct": True, "us": 5.0, "speedup": 2.5998}
    text = table(result({**RIGHT, "searched": searched}))
    assert "| 1.29 | 5.0 | 2.59 |" in text and "after a search: geometric mean 2.59" in text


def test_what_failed_or_did_not_run_is_named():
    text = table(
        result(
            {"module": "resnet18", "correct": False, "stage": "check", "reason": "off"},
            {"module": "vit_layer", "correct": False, "not_run": "package transformers missing"},
            {**RIGHT, "searched": {"correct": False, "reason": "no time"}},
        )
    )
    assert "- `resnet18` failed (check): off" in text
    assert "- `vit_layer` did not run: package transformers missing." in text
    assert "- `lstm` after a search failed: no time" in text
