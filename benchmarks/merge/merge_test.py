"""Tests that runs of a suite are merged by problem or module, the last one counts, and different
runs are rejected."""

import json

import pytest

from benchmarks.merge.__main__ import main

HEAD = {
    "command": "race",
    "date": "2026-11-26",
    "suite": "kernelbench",
    "sizes": "the problems' own",
    "machine": "a GPU",
    "driver": "1",
    "versions": {"torch": "2"},
    "clocks_mhz": {"sm": 1},
}


def row(number, us, **facts):
    known = {"level": 1, "problem": f"{number}_P", "number": number, "degenerate": ""}
    return {**known, "correct": True, "us": us, "speedup": 2.0, "speedups": {"eager": 2.0}} | facts


@pytest.fixture
def run(tmp_path):
    def written(name, rows, **other):
        file = tmp_path / name
        file.write_text(json.dumps({**HEAD, **other, "rows": rows}))
        return str(file)

    return written


def merge(tmp_path, *files):
    code = main([*files, f"--out={tmp_path}/out.json"])
    out = tmp_path / "out.json"
    return code, json.loads(out.read_text()) if out.exists() else None


def test_of_each_problem_the_last_row_counts_right_or_not(run, tmp_path):
    first = run("a.json", [row(2, 5.0), row(1, 7.0)])
    second = run("b.json", [row(2, None, correct=False, stage="check")], date="2026-11-27")
    code, table = merge(tmp_path, first, second)
    assert code == 0 and [(r["number"], r["us"], r["run"]) for r in table["rows"]] == [
        (1, 7.0, 0),
        (2, None, 1),
    ]
    assert [(r["date"], r["rows"]) for r in table["runs"]] == [("2026-11-26", 1), ("2026-11-27", 1)]
    assert table["date"] == "2026-11-27" and table["summary"]["all"]["correct"] == 1


def test_a_merged_file_can_be_merged_again(run, tmp_path):
    first, second = run("a.json", [row(1, 5.0)]), run("b.json", [row(2, 6.0)])
    assert merge(tmp_path, first, second)[0] == 0
    (tmp_path / "out.json").rename(tmp_path / "both.json")
    code, table = merge(tmp_path, str(tmp_path / "both.json"), run("c.json", [row(2, 4.0)]))
    assert code == 0 and [(r["us"], r["run"]) for r in table["rows"]] == [(5.0, 0), (4.0, 2)]
    assert [r["rows"] for r in table["runs"]] == [1, 0, 1]


def test_a_search_is_added_to_the_row_of_an_earlier_race(run, tmp_path):
    base = run("a.json", [row(1, 5.0), row(2, 6.0)])
    assert merge(tmp_path, base, run("b.json", [row(3, 7.0)]))[0] == 0
    before = json.loads((tmp_path / "out.json").read_text())
    (tmp_path / "out.json").rename(tmp_path / "both.json")
    searched = {"correct": True, "us": 4.0, "speedup": 2.5}
    rows = [{**r, "searched": searched} if r["number"] == 1 else r for r in before["rows"]]
    again = run("c.json", rows, command="search")  # It continued the merged file.
    code, table = merge(tmp_path, str(tmp_path / "both.json"), again)
    assert code == 0 and [r["run"] for r in table["rows"]] == [0, 0, 1]
    assert table["rows"][0] == {**row(1, 5.0), "run": 0, "searched": {"run": 2, **searched}}
    assert [r["rows"] for r in table["runs"]] == [2, 1, 1]
    (tmp_path / "out.json").rename(tmp_path / "all.json")
    assert merge(tmp_path, str(tmp_path / "all.json"), again)[1]["rows"] == table["rows"]


@pytest.mark.parametrize("other", [{"machine": "another GPU"}, {"versions": {"torch": "3"}}])
def test_unlike_runs_are_refused_and_nothing_is_written(run, tmp_path, capsys, other):
    files = run("a.json", [row(1, 5.0)]), run("b.json", [row(1, 4.0)], **other)
    assert merge(tmp_path, *files) == (2, None)
    said = capsys.readouterr().err
    assert "b.json" in said and next(iter(other)) in said


def test_a_file_without_rows_is_refused(run, tmp_path, capsys):
    assert merge(tmp_path, run("a.json", [])) == (2, None)
    assert "it has no rows" in capsys.readouterr().err


def test_modules_are_merged_by_their_names(run, tmp_path):
    def module(name, us):
        return {"module": name, "correct": True, "us": us, "speedups": {}, "speedup": 2.0}

    first = run("a.json", [module("lstm", 5.0), module("resnet18", 7.0)], suite="modules")
    second = run("b.json", [module("lstm", 4.0)], suite="modules")
    code, table = merge(tmp_path, first, second)
    found = [(r["module"], r["us"], r["run"]) for r in table["rows"]]
    assert code == 0 and found == [("resnet18", 7.0, 0), ("lstm", 4.0, 1)]


def test_verdicts_of_the_harness_are_merged_by_problem(run, tmp_path):
    def judged(number, right):
        verdict = {"compiled": True, "correctness": right, "runtime": 1.0, "ref_runtime": 2.0}
        return {"level": 1, "problem": f"{number}_P", "number": number, "as_is": verdict}

    suite = {"suite": "kernelbench_harness", "harness": "commit 1"}
    first = run("a.json", [judged(1, False)], **suite)
    code, table = merge(tmp_path, first, run("b.json", [judged(1, True), judged(2, True)], **suite))
    assert code == 0 and table["harness"] == "commit 1"
    assert table["summary"]["all"]["as_is"]["correct"] == 2
    assert (
        merge(tmp_path, first, run("c.json", [judged(3, True)], **suite | {"harness": "2"}))[0] == 2
    )


def test_files_of_another_kind_are_refused(run, tmp_path, capsys):
    assert merge(tmp_path, run("a.json", [row(1, 5.0)], suite="starter")) == (2, None)
    assert "kernelbench, kernelbench_harness, modules" in capsys.readouterr().err
