"""Tests that the tables of docs/benchmarks.md match the result files."""

from __future__ import annotations

import json

import pytest

from benchmarks.results import settle, summary
from testing.samples.samples import LIBRARY
from tools import aten_table, results_table
from tools.results_table import NOTHING, PAGE, RESULTS, page, pages, table

ROOT = LIBRARY.parent.parent
TEXT = "before\n<!-- table: chip/some -->\nold\n<!-- end -->\nafter\n"


def row(**changes):
    made = {
        "kernel": "one",
        "dtype": "f16",
        "shape": {"M": 4, "K": 8},
        "us": 2.0,
        "baselines_us": {"eager": 3.999, "compile": None},
        "failures": {"compile": "Ill: no compiler"},
        "roofline_us": 1.999,
        "rel_err": 1.2e-4,
        "reference_rel_err": 2e-4,
        "correct": True,
    } | changes
    settle(made)
    return made


def result(*rows):
    return {
        "command": "python3 -m x",
        "date": "2026-11-21",
        "machine": "Chip",
        "driver": "1.2",
        "versions": {"torch": "2"},
        "clocks_mhz": {"sm": 1980, "memory": 3201, "sm_max": 1980},
        "summary": summary(rows),
        "rows": list(rows),
    }


def test_a_row_holds_times_and_ratios_that_are_cut_and_not_rounded():
    made = table(result(row()))
    assert (
        "| one | f16 | M=4 K=8 | 2.0 | 4.0 | failed |  |  | eager | 1.99 | 0.99 "
        "| 1.2e-04 | 2.0e-04 |"
    ) in made
    assert "Chip, driver 1.2, torch 2; clocks at the end 1980 MHz" in made


def test_failures_of_both_sides_stand_below_with_their_reasons():
    made = table(result(row(), row(kernel="two", correct=False, us=None, reason="it is wrong")))
    assert "- two f16 M=4 K=8: it is wrong" in made
    assert "- one f16 M=4 K=8, baseline `compile`: Ill: no compiler" in made
    assert "| two | f16 | M=4 K=8 | failed |" in made


def test_the_summary_gives_more_than_a_mean():
    made = table(result(row(), row(dtype="f32", baselines_us={"eager": 1.0})))
    assert "| all | 2 | 0 | 1 | 0.99 |" in made
    assert "| f32 | 1 | 0 | 0 | 0.50 | 0.50 | 0.50 | 0.50 |" in made


def test_rates_have_a_table_where_there_are_rates():
    made = table(result(row(tflops=100.0, peak_share=0.505, baselines_tflops={"eager": 50.0})))
    assert "| one | f16 | M=4 K=8 | 100.0 | 50.0 | 0.50 |" in made


def test_other_forms_and_modes_that_were_not_raced_are_named():
    made = table(result(row(baselines_us={"eager": 3.0, "eager_wide": 2.5})))
    assert "- one f16 M=4 K=8: `eager_wide` 2.5" in made
    assert "Not raced in any row: `max_autotune`, `reduce_overhead`." in made


def test_rows_that_lose_are_listed_the_worst_first():
    made = table(result(row(us=4.0), row(kernel="two", us=8.0), row(kernel="three", us=1.0)))
    assert made.endswith(
        "- 0.49: two f16 M=4 K=8, against `eager`\n- 0.99: one f16 M=4 K=8, against `eager`\n"
    )


def test_one_line_of_the_summary_is_over_the_plain_form_of_the_baseline_alone():
    other = row(baselines_us={"eager": 7.999, "eager_transposed": 2.0})
    made = table(result(row(), other))
    assert "| all | 2 | 0 | 1 | 1.41 |" in made
    assert "| all, over the plain form | 2 | 0 | 2 | 2.82 |" in made
    assert "plain form" not in table(result(row()))


def test_a_failed_row_counts_and_needs_no_schedule():
    made = table(result(row(), row(kernel="two", correct=False, us=None, reason="no")))
    assert "| all | 2 | 1 | 1 |" in made


def test_the_page_of_a_machine_names_each_kernel_that_loses():
    """A loss is stated in words too. Problems of a suite are grouped by their kinds."""
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    words = text.split("## What falls short", 1)[1].split("\n## ", 1)[0]
    for file in (ROOT / RESULTS).glob("*/*.json"):
        for r in json.loads(file.read_text(encoding="utf-8"))["rows"]:
            lost = r.get("kernel") and "speedup" in r and (r["speedup"] or 0) < 1
            assert not lost or f"`{r['kernel']}`" in words, r["kernel"]


def test_only_what_stands_between_the_markers_is_replaced(tmp_path):
    made = page(TEXT, tmp_path)
    assert made == TEXT.replace("old\n", NOTHING)
    (tmp_path / "chip").mkdir()
    (tmp_path / "chip/some.json").write_text(json.dumps(result(row())))
    made = page(made, tmp_path)
    assert made.startswith("before\n") and made.endswith("after\n") and "| one |" in made
    assert NOTHING not in made and page(made, tmp_path) == made


def test_the_page_is_what_the_result_files_say():
    for path in pages(ROOT):
        text = (ROOT / path).read_text(encoding="utf-8")
        assert page(text, ROOT / RESULTS) == text, "run `bazel run //tools:results_table`"


def test_every_result_file_has_a_table():
    """The tables of operators of all targets are on one page, and some are on other pages. Notes of
    backends cite the effects of single decisions, which their own test checks."""
    text = "".join((ROOT / path).read_text(encoding="utf-8") for path in pages(ROOT))
    operators = (ROOT / aten_table.PAGE).read_text(encoding="utf-8")
    names = ("search*.md", "hip.md")
    files = (p for each in names for p in (ROOT / PAGE).parent.glob(each))
    others = [p.read_text(encoding="utf-8") for p in files]
    for file in (ROOT / RESULTS).glob("*/*.json"):
        name = file.relative_to(ROOT / RESULTS).with_suffix("")
        of_operators = name.name == "aten" and file.parent.name in operators
        cited = name.name == "effects" or any(f"{name}.json" in page for page in others)
        assert of_operators or cited or f"<!-- table: {name} -->" in text


@pytest.mark.parametrize("changed", [False, True])
def test_the_command_checks_and_writes(tmp_path, monkeypatch, capsys, changed):
    monkeypatch.setenv("BUILD_WORKSPACE_DIRECTORY", str(tmp_path))
    (tmp_path / "docs").mkdir()
    text = TEXT if changed else TEXT.replace("old\n", NOTHING)
    for path in pages(ROOT):
        (tmp_path / path).write_text(text)
    assert results_table.main(["--check"]) == int(changed)
    assert results_table.main([]) == 0 and results_table.main(["--check"]) == 0
    assert NOTHING in (tmp_path / PAGE).read_text()
    (tmp_path / PAGE).unlink()
    assert results_table.main([]) == 2
