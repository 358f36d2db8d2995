"""Tests the command at tiny sizes: it continues an interrupted run, and finds the same."""

import json

import pytest

from benchmarks.search.__main__ import main
from benchmarks.search.rows import read
from search.core.evaluation import Failure
from search.store.store import Store


def call(folder, *more, out="r.json", store="s.db"):
    places = ["--store", str(folder / store), "--out", str(folder / out)]
    usual = ["--kernels", "cumsum", "--evaluations", "5", "--target", "npu_small"]
    return main([*usual, *places, *more])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ablation")
    assert call(folder, "--configurations", "greedy", "random", "--seeds", "2") == 0
    return folder


def test_each_row_is_a_search_of_as_many_evaluations(made):
    rows = read(made / "r.json")
    assert [(r["configuration"], r["seed"]) for r in rows] == [
        ("greedy", 1),
        ("greedy", 2),
        ("random", 1),
        ("random", 2),
    ]
    for r in rows:
        assert r["made"] == 5 and r["correct"] and r["time_kind"] == "simulated"
        assert r["curve"][0] == [1, r["first_us"]] and r["curve"][-1][1] == r["us"]
        assert sum(count for count, _ in r["operators"].values()) == 5
        assert sum(gains for _, gains in r["operators"].values()) == len(r["curve"])


def test_the_file_says_how_it_was_made_and_what_it_comes_to(made):
    file = json.loads((made / "r.json").read_text())
    assert file["command"].startswith("python3 -m benchmarks.search --target npu_small")
    assert file["versions"]["optuna"]
    assert len(file["summary"]["policies"]["rows"]) == 2


def test_rows_that_are_there_are_not_made_again(made, capsys):
    before = read(made / "r.json")
    assert call(made, "--configurations", "greedy", "random", "--seeds", "2") == 0
    assert capsys.readouterr().err == "" and read(made / "r.json") == before


def test_another_run_with_the_same_store_evaluates_nothing_and_finds_the_same(made, monkeypatch):
    def refuse(self, candidates, seconds=None):
        assert not list(candidates), "it was evaluated before"
        return iter(())

    monkeypatch.setattr("search.evaluator.local.LocalEvaluator.evaluate", refuse)
    assert call(made, "--configurations", "greedy", "--seeds", "2", out="again.json") == 0
    again, first = read(made / "again.json"), read(made / "r.json")
    assert again == [r for r in first if r["configuration"] == "greedy"]


@pytest.mark.slow
def test_several_processes_make_the_same_rows_and_go_on(made, tmp_path):
    words = ("--configurations", "greedy", "--seeds", "1", "--processes", "2")
    assert call(tmp_path, *words) == 0
    (first,) = read(tmp_path / "r.json")
    words = ("--configurations", "greedy", "random", "--seeds", "2", "--processes", "2")
    assert call(tmp_path, *words) == 0
    rows = read(tmp_path / "r.json")
    assert rows == read(made / "r.json") and first in rows
    stores = sorted(file.name for file in tmp_path.glob("*.db"))
    assert stores == ["s-npu_small-cumsum-1.db", "s-npu_small-cumsum-2.db"]


@pytest.mark.slow
def test_a_search_that_is_interrupted_gives_no_row_and_is_made_again(tmp_path, monkeypatch, capsys):
    words = ("--configurations", "greedy", "--seeds", "1")
    with monkeypatch.context() as patched:
        patched.setattr("search.evaluator.local.LocalEvaluator.evaluate", _interrupted)
        assert call(tmp_path, *words) == 130
    assert "run the same command to continue" in capsys.readouterr().err
    assert read(tmp_path / "r.json") == []
    assert call(tmp_path, *words) == 0
    assert [r["made"] for r in read(tmp_path / "r.json")] == [5]


def _interrupted(self, candidates, seconds=None):
    raise KeyboardInterrupt


def test_a_search_that_finds_nothing_correct_is_a_row_that_says_why(tmp_path, monkeypatch, capsys):
    def fails(self, candidates, seconds=None):
        yield from ((n, Failure("build", "refused", "no compiler")) for n in range(len(candidates)))

    monkeypatch.setattr("search.evaluator.local.LocalEvaluator.evaluate", fails)
    assert call(tmp_path, "--configurations", "greedy", "--seeds", "1") == 0
    (row,) = read(tmp_path / "r.json")
    assert not row["correct"] and row["us"] is None and row["failures"]["build"] >= 1
    assert row["why"] == "no compiler"
    assert json.loads((tmp_path / "r.json").read_text())["summary"]["failed"] == 1
    assert "nothing correct" in capsys.readouterr().err


@pytest.mark.slow
def test_memory_starts_from_what_the_store_holds(made, tmp_path):
    words = ("--configurations", "greedy+memory", "--seeds", "1", "--memory", str(made / "s.db"))
    assert call(tmp_path, *words) == 0
    (row,) = read(tmp_path / "r.json")
    assert min(r["us"] for r in read(made / "r.json")) >= row["us"]
    store = Store(str(tmp_path / "s.db"))
    (run,) = store.runs_of("cumsum")
    assert store.load(run).settings.transferred
    store.close()


@pytest.mark.parametrize(
    "words, what",
    [
        (("--kernels", "nothing"), "no kernel `nothing`"),
        (("--configurations", "lucky"), "no policy `lucky`"),
        (("--configurations", "greedy+memory"), "starts from memory"),
        (("--target", "moon"), "moon"),
    ],
)
def test_wrong_use_is_refused_before_anything_runs(words, what, tmp_path, capsys):
    assert call(tmp_path, *words) == 2
    assert what in capsys.readouterr().err
    assert not (tmp_path / "s.db").exists()
