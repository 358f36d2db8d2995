"""Runs of a race are merged by problem, the last one counts, and unlike runs are refused."""

import json

import pytest

from benchmarks.kernelbench.merge import main

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


@pytest.mark.parametrize("other", [{"machine": "another GPU"}, {"versions": {"torch": "3"}}])
def test_unlike_runs_are_refused_and_nothing_is_written(run, tmp_path, capsys, other):
    files = run("a.json", [row(1, 5.0)]), run("b.json", [row(1, 4.0)], **other)
    assert merge(tmp_path, *files) == (2, None)
    said = capsys.readouterr().err
    assert "b.json" in said and next(iter(other)) in said


def test_a_file_without_rows_is_refused(run, tmp_path, capsys):
    assert merge(tmp_path, run("a.json", [])) == (2, None)
    assert "it has no rows" in capsys.readouterr().err
