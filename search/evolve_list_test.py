"""The command without a search: its version, the library's kernels, the store's runs."""

import json
import platform
import signal
import sqlite3
from importlib import metadata

import pytest

from search.cli.suite import library
from search.store.store import Store
from testing.cli.place import Place

ROWS = ("--kernel=rows.kir", "--policy=evolutionary", "--store=runs.db")


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path, "null")


def told(place, *words, **more):
    code, out, err = place.run_here(*words, **more)
    assert (code, err) == (0, "")
    return out


def test_the_version_comes_with_those_of_what_it_uses(place):
    lines = told(place, "--version").splitlines()
    found = json.loads(told(place, "--version", "--json"))
    assert lines == [f"{name} {version}" for name, version in found.items()]
    assert lines[0] == "speciate 0.1.0" and lines[1] == f"python {platform.python_version()}"
    assert found["torch"] == metadata.version("torch") and len(lines) > 3


def test_kernels_are_listed_with_signatures_and_sizes(place):
    rows = json.loads(told(place, "--list-kernels", "--json"))["kernels"]
    assert [row["kernel"] for row in rows] == list(library())
    out = told(place, "--list-kernels")
    for row in rows:
        assert row["signature"].startswith(f"{row['kernel']}(") and row["signature"] in out
        assert row["title"] in out and row["tune"] and row["checks"]
    assert place.new_files() == []


def test_runs_are_listed_with_what_they_found_and_how_they_stand(place):
    found = place.evolve(*ROWS, "--evaluations=6")["runs"][0]
    dies = place.signalled(signal.SIGKILL, 6)
    code, _, _ = place.run("--target=null", *ROWS, "--evaluations=300", "--seed=1", **dies)
    assert code == -signal.SIGKILL
    killed, ended = json.loads(told(place, "--list-runs", "--store=runs.db", "--json"))["runs"]
    assert (killed["run"], killed["state"]) == ("rows-null-2", "not ended")
    assert (ended["run"], ended["state"]) == ("rows-null-1", "ended")
    for name in ("kernel", "target", "evaluations", "best_us", "time_kind", "stopped_because"):
        assert ended[name] == found[name]
    lines = told(place, "--list-runs", "--store=runs.db").splitlines()
    assert lines[0].split()[:4] == ["run", "kernel", "target", "started"]
    assert lines[3].startswith("rows-null-1") and lines[3].endswith("ended")


def test_without_a_store_no_run_is_listed_and_none_is_made(place):
    assert json.loads(told(place, "--list-runs", "--json")) == {"runs": []}
    assert "no run is stored in" in told(place, "--list-runs")
    assert place.new_files() == []


def test_a_stored_run_is_shown_as_it_was_told(place):
    found = place.evolve(*ROWS, "--evaluations=8", "--seed=3")["runs"][0]
    shown = json.loads(told(place, "--show=rows-null-1", "--store=runs.db", "--json"))["run"]
    assert {name: shown[name] for name in found} == found
    assert shown["settings"]["seed"] == 3 and shown["state"] == "ended"
    out = told(place, "--show=rows-null-1", "--store=runs.db")
    assert found["source"].rstrip() in out and found["schedule"].rstrip() in out
    assert all(line in out for line in shown["lineage"])
    assert "8 evaluations were asked for and made" in out and "seed: 3" in out
    opened = Store(str(place.work / "runs.db"))
    assert opened.runs() == ("rows-null-1",)
    assert opened.load("rows-null-1").events[-1].kind == "stopped"
    opened.close()


def test_a_run_that_shared_kernels_is_shown_with_all_of_them(place):
    shapes = ("--shape=M=8", "--shape=M=512,K=7", "--dispatch=2", "--held-out=0")
    found = place.evolve(*ROWS, *shapes, "--evaluations=12")["runs"][0]
    shown = json.loads(told(place, "--show=rows-null-1", "--store=runs.db", "--json"))["run"]
    assert shown["dispatch"] == found["dispatch"] and shown["shapes"] == found["shapes"]
    assert all(kernel["source"] for kernel in found["dispatch"]["kernels"])


def test_an_unknown_run_is_told_with_those_that_are_known(place):
    place.evolve(*ROWS, "--evaluations=2")
    code, out, err = place.run_here("--show=rows-null-7", "--store=runs.db")
    assert (code, out) == (2, "") and "no run `rows-null-7`" in err and "rows-null-1" in err


def test_what_a_damaged_store_still_holds_is_salvaged(place):
    for seed in ("--seed=0", "--seed=1"):
        place.evolve(*ROWS, "--evaluations=4", seed)
    with sqlite3.connect(place.work / "runs.db") as connection:
        connection.execute("UPDATE runs SET settings = '{' WHERE id = 'rows-null-1'")
    rows = json.loads(told(place, "--list-runs", "--store=runs.db", "--json"))["runs"]
    assert {row["run"]: row["state"] for row in rows} == {
        "rows-null-2": "ended",
        "rows-null-1": "damaged",
    }
    code, out, err = place.run_here("--show=rows-null-1", "--store=runs.db")
    assert (code, out) == (2, "") and "the settings of run `rows-null-1` are damaged" in err
    assert "--salvage" in err
    found = told(place, "--salvage=new.db", "--store=runs.db", "--json")
    assert json.loads(found)["saved"]["runs"] == json.loads(found)["lost"]["runs"] == 1
    code, _, err = place.run_here("--resume=rows-null-2", "--store=new.db", "--evaluations=6")
    assert code == 0, err


def test_a_run_in_progress_is_not_resumed_by_another_process(place):
    place.evolve(*ROWS, "--evaluations=2")
    store = Store(str(place.work / "runs.db"))
    store.resume("rows-null-1")
    code, out, err = place.run("--resume=rows-null-1", "--store=runs.db", "--evaluations=9")
    assert (code, out) == (2, "") and "works on run `rows-null-1`" in err
    store.close()


@pytest.mark.parametrize(
    "width", [60, *(pytest.param(n, marks=pytest.mark.slow) for n in (80, 100, 120))]
)
def test_what_is_printed_fits_the_terminal(place, width):
    wide = {"COLUMNS": str(width)}
    code, out, _ = place.run_here("--target=null", *ROWS, "--evaluations=4", **wide)
    out += told(place, "--list-runs", "--store=runs.db", **wide)
    assert code == 0 and max(map(len, out.splitlines())) <= width
    assert "4 evaluations were asked for and made" in " ".join(out.split())
