"""Tests searches for the kernels of contests: their commands and their rows."""

import json
import sys

import pytest

from benchmarks import searches
from benchmarks.candidates import CONTESTS
from benchmarks.entrant import ROOT
from benchmarks.searches import beside, command, found_before, line, main, searched
from ir.parse.parse import parse_workload
from search.cli.arguments import arguments
from search.cli.shapes import worded

FOUND = {
    "kernel": "conv1d",
    "best_us": 100.0,
    "first_us": 200.0,
    "time_kind": "measured",
    "evaluations": 7,
}


@pytest.mark.parametrize("name", CONTESTS)
def test_a_command_searches_from_the_equations_of_a_contest_at_its_sizes(name, tmp_path):
    contest = CONTESTS[name]
    _, program, *words = command(contest, name, "h200", ["cutedsl", "cuda"], 90, tmp_path)
    found = arguments(words, "h200", name)
    assert program == "search.evolve"
    assert (found.targets, found.backends) == (("h200",), ("cutedsl", "cuda"))
    assert found.schedule is None and found.shapes == (
        worded(",".join(f"{n}={v}" for n, v in contest.sizes.items())),
    )
    (kernel,) = found.kernels
    text = (ROOT / kernel).read_text(encoding="utf-8")
    assert parse_workload(text, kernel).spec == contest.work().spec


def test_rows_are_kept_and_what_has_one_is_not_searched_for_again(tmp_path, monkeypatch, capsys):
    asked = []

    def found(words, seconds, log):
        asked.append(log.stem)
        return dict(FOUND) if log.stem == "conv1d" else {"reason": "exit code 1: a fault"}

    monkeypatch.setattr(searches, "searched", found)
    words = ["--target=h200", "--contests=conv1d,conv2d", f"--out={tmp_path}"]
    assert main(words) == 1
    assert main(words) == 1
    assert asked == ["conv1d", "conv2d", "conv2d"]
    rows = json.loads((tmp_path / "searches.json").read_text(encoding="utf-8"))["rows"]
    assert [r["contest"] for r in rows] == ["conv1d", "conv2d"]
    said = capsys.readouterr().err
    assert "conv1d: 100.0 us measured of 7 evaluations" in said and "conv2d: FAILED" in said


def test_the_candidate_by_hand_and_the_fastest_baseline_stand_beside(tmp_path):
    contest = CONTESTS["conv1d"]
    row = {"kernel": "conv1d", "dtype": "f16", "shape": contest.sizes, "us": 160.0}
    rows = [row | {"candidate": "1", "baselines_us": {"eager": 341.0, "compile": 262.0, "x": None}}]
    assert beside(contest, rows) == {"by_hand_us": 160.0, "by_hand": "1", "baseline_us": 262.0}
    assert beside(CONTESTS["conv2d"], rows) == {}


def test_what_a_search_found_before_stands_beside():
    rows = [{"contest": "conv2d", "reason": "a fault"}, {"contest": "conv1d", "best_us": 104.0}]
    assert found_before("conv1d", rows) == {"before_us": 104.0}
    assert found_before("conv2d", rows) == found_before("matmul_f8", rows) == {}
    said = line({"contest": "conv1d", **FOUND, **found_before("conv1d", rows)})
    assert said.endswith("seed 200.0 us; found before 104.0 us")


def test_a_line_says_where_the_seed_failed():
    said = [line({"contest": "conv1d", **FOUND, "first_us": us}) for us in (200.0, None)]
    assert said[0].endswith("7 evaluations, seed 200.0 us")
    assert said[1].endswith("7 evaluations, its seed failed")


def test_a_search_that_ends_without_a_result_has_a_reason(tmp_path):
    words = ["-c", "import sys; print('what is wrong', file=sys.stderr); sys.exit(3)"]
    assert sys.executable
    assert searched(words, 10, tmp_path / "log") == {"reason": "exit code 3: what is wrong"}


@pytest.mark.parametrize("wrong", ("--contests=nothing", "--backends=nothing", "--target=nothing"))
def test_what_there_is_not_is_refused(wrong, tmp_path, capsys):
    assert main(["--target=h200", f"--out={tmp_path}", wrong]) == 2
    assert "nothing" in capsys.readouterr().err
