"""Tests that the tables of docs/aten.md match the result files."""

from __future__ import annotations

import json

from benchmarks.aten.rows import summary
from testing.samples.samples import LIBRARY
from tools import aten_table
from tools.aten_table import PAGE, RESULTS, files, page

ROOT = LIBRARY.parent.parent


def row(operator="add", dtype="f32", verdict="pass", **changes):
    return {
        "operator": operator,
        "dtype": dtype,
        "verdict": verdict,
        "correct_by": "simulator",
        "judged_by": "values",
        "samples": 2,
        "passed": 2,
        "reason": "",
    } | changes


def found(*rows):
    return {"chip": {"rows": list(rows), "summary": summary(rows)}}


def marked(name, files):
    return page(f"a\n<!-- table: {name} -->\nold\n<!-- end -->\nb\n", files)


ROWS = (
    row(),
    row(dtype="bf16", verdict="fail", passed=1, reason="a | b\nc"),
    row("rand", judged_by="properties"),
    row("to", dtype="i64", verdict="not expressible"),
)


def test_counts_are_by_target_and_dtype():
    made = marked("counts", found(*ROWS))
    assert "| chip | simulator | f32 | 2 | 2 | 0 | 0 |" in made
    assert "| chip | simulator | bf16 | 1 | 0 | 1 | 0 |" in made
    assert "| chip | simulator | i64 | 1 | 0 | 0 | 1 |" in made
    assert made.startswith("a\n<!--") and made.endswith("<!-- end -->\nb\n") and "old" not in made


def test_an_operator_has_a_cell_for_each_target():
    files = {**found(*ROWS), "other": found(row("mul"))["chip"]}
    made = marked("operators", files)
    assert "| operator | chip | other |" in made
    assert "| `add` | f32, bf16 **fails** |  |" in made
    assert "| `mul` |  | f32 |" in made
    assert "| `rand` | f32 (properties) |  |" in made
    assert "| `to` | i64 none |  |" in made


def test_failures_have_their_reasons():
    made = marked("failures", found(*ROWS))
    assert "| `add` | bf16 | chip | 1 of 2 | a \\| b c |" in made
    assert "Nothing." in marked("failures", found(row()))


def test_the_page_is_what_the_result_files_say():
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    assert page(text, files(ROOT / RESULTS)) == text


def test_the_command_writes_and_compares(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("BUILD_WORKSPACE_DIRECTORY", str(tmp_path))
    assert aten_table.main([]) == 2
    folder = tmp_path / RESULTS / "chip"
    folder.mkdir(parents=True)
    (folder / "aten.json").write_text(json.dumps(found(*ROWS)["chip"]))
    (tmp_path / PAGE).parent.mkdir()
    (tmp_path / PAGE).write_text("<!-- table: counts -->\n<!-- end -->\n")
    assert aten_table.main(["--check"]) == 1
    assert aten_table.main([]) == 0 and aten_table.main(["--check"]) == 0
    assert "up to date" in capsys.readouterr().out
