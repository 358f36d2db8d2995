"""The store keeps every event of every run, and reports when it cannot."""

import os
import sqlite3
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ir.errors import KernelError
from search.core.candidate import Candidate, Origin
from search.core.evaluation import Evaluation, Failure
from search.core.graph import Edge
from search.core.settings import Settings
from search.core.stored import StoredEvent, StoredExchange
from search.store import holder
from search.store.store import Store

SETTINGS = Settings("softmax", "def softmax", "chip", ("tongue",), {"M": 8}, ({"M": 1},), seed=3)
ROOT = Candidate("spec", "root", "chip", "tongue", origin=Origin("first"))
CHILD = Candidate(
    "spec", "child", "chip", "tongue", "source", Origin("mutate", (ROOT.key,), "+ tile")
)
GOOD = Evaluation(1 / 3, "simulated", "simulator", figures={"cycles": 0.1}, seconds={"time": 2.0})
BAD = Failure("check", "wrong", "off by one")


@pytest.fixture
def store(tmp_path):
    store = Store(str(tmp_path / "store.db"))
    yield store
    store.close()


def test_runs_are_named_and_counted(store):
    names = [store.start(s, {}) for s in (SETTINGS, SETTINGS, replace(SETTINGS, target="chop"))]
    assert names == ["softmax-chip-1", "softmax-chip-2", "softmax-chop-1"]
    assert set(store.runs()) == set(names)


def test_a_run_comes_back_as_it_was(store):
    run = store.start(SETTINGS, {"context": "abc", "sandbox": {"landlock": "yes"}})
    store.asked(run, 0, [ROOT], 0.5)
    store.evaluated(run, ROOT.key, "abc", GOOD, 1.0)
    store.log(run, StoredEvent("told", ROOT.key, 1.5, ""))
    store.asked(run, 1, [CHILD], 2.0)
    store.evaluated(run, CHILD.key, "abc", BAD, 3.0)
    record = store.load(run)
    assert record.settings == SETTINGS
    assert record.environment == {"context": "abc", "sandbox": {"landlock": "yes"}}
    assert record.generations == ((ROOT,), (CHILD,))
    assert [c.origin for g in record.generations for c in g] == [ROOT.origin, CHILD.origin]
    assert record.outcomes == {ROOT.key: GOOD, CHILD.key: BAD}
    assert record.outcomes[ROOT.key].seconds == GOOD.seconds
    kinds = [e.kind for e in record.events]
    assert kinds == ["started", "asked", "evaluated", "told", "asked", "evaluated"]
    assert record.keys("told") == {ROOT.key}
    assert record.seconds == 3.0
    assert list(record.graph().edges()) == [Edge(CHILD.key, ROOT.key, 0, "mutate", "+ tile")]


def test_what_is_stored_is_there_for_another_process(store):
    run = store.start(SETTINGS, {})
    store.asked(run, 0, [ROOT], 0.0)
    assert Store(store.url).load(run).generations == ((ROOT,),)


def test_a_generation_asked_again_replaces_its_candidates(store):
    run = store.start(SETTINGS, {})
    other = replace(CHILD, schedule="other")
    store.asked(run, 0, [ROOT], 0.0)
    store.asked(run, 1, [CHILD], 1.0)
    store.asked(run, 1, [CHILD], 2.0)
    assert [e.kind for e in store.load(run).events].count("asked") == 2
    store.asked(run, 1, [other], 3.0)
    record = store.load(run)
    assert record.generations == ((ROOT,), (other,))
    assert record.keys("withdrawn") == {CHILD.key}


def test_an_outcome_is_found_from_any_run_in_the_same_context(store):
    run = store.start(SETTINGS, {})
    store.asked(run, 0, [ROOT], 0.0)
    store.evaluated(run, ROOT.key, "abc", GOOD, 1.0)
    assert store.cached(ROOT.key, "abc") == GOOD
    assert store.cached(ROOT.key, "abd") is None
    assert store.cached(CHILD.key, "abc") is None


def test_the_log_is_in_write_ahead_mode(store):
    with sqlite3.connect(store.url) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_nothing_of_a_failed_transaction_stays(store):
    run = store.start(SETTINGS, {})
    with pytest.raises(KernelError, match="the store cannot be used"):
        store.asked(run, 0, [ROOT, CHILD, ROOT], 0.0)
    assert store.load(run).generations == ()
    assert [e.kind for e in store.load(run).events] == ["started"]


def test_an_unknown_run_is_refused_with_those_that_are_known(store):
    run = store.start(SETTINGS, {})
    with pytest.raises(KernelError, match="the store has no run `softmax-chip-9`") as caught:
        store.load("softmax-chip-9")
    assert run in caught.value.allowed


def test_exchanges_come_back_in_the_order_in_which_they_ended(store):
    run, other = store.start(SETTINGS, {}), store.start(SETTINGS, {})
    asked = [StoredExchange("d", rank, f"request {rank}", "reply", 0.1) for rank in (1, 0)]
    for exchange in asked:
        store.exchanged(run, exchange)
    store.exchanged(other, replace(asked[0], reply="another"))
    assert Store(store.url).exchanges(run) == tuple(asked)
    again = replace(asked[0], reply="a later one")
    store.exchanged(run, again)
    assert store.exchanges(run) == (asked[1], again)
    assert [e.reply for e in store.exchanges(other)] == ["another"]


@pytest.mark.parametrize("name", ["a?b=c.db", "50%41.db", "my runs.db", "läufe#1.db", "a:b.db"])
def test_a_file_may_have_any_name(name, tmp_path):
    store = Store(str(tmp_path / name))
    run = store.start(SETTINGS, {})
    store.close()
    assert Store(store.url).load(run).settings == SETTINGS
    assert [f.name for f in tmp_path.iterdir() if not f.name.startswith(f"{name}-")] == [name]


DAMAGED = {
    "settings": "UPDATE runs SET settings = '{}'",
    "environment": "UPDATE runs SET environment = 'none'",
    "candidates": "UPDATE nodes SET candidate = substr(candidate, 1, 40)",
    "evaluations": "UPDATE evaluations SET outcome = '[1]'",
}


@pytest.mark.parametrize("part", DAMAGED)
def test_a_damaged_row_is_named_with_a_remedy(store, part):
    run = store.start(SETTINGS, {})
    store.asked(run, 0, [ROOT], 0.0)
    store.evaluated(run, ROOT.key, "abc", GOOD, 1.0)
    with sqlite3.connect(store.url) as connection:
        connection.execute(DAMAGED[part])
    with pytest.raises(KernelError, match=f"the {part} of run `{run}` are damaged") as caught:
        store.load(run)
    assert "--salvage" in caught.value.hint and caught.value.where == store.url


def test_a_damaged_outcome_is_not_taken_for_another_run(store):
    run = store.start(SETTINGS, {})
    store.evaluated(run, ROOT.key, "abc", GOOD, 1.0)
    with sqlite3.connect(store.url) as connection:
        connection.execute(DAMAGED["evaluations"])
    assert store.cached(ROOT.key, "abc") is None


def test_a_run_that_stopped_may_be_resumed_by_anybody(store):
    run = store.start(SETTINGS, {})
    store.log(run, StoredEvent("stopped", "", 1.0, "it was interrupted"))
    assert store.resume(run).settings == SETTINGS
    store.asked(run, 0, [ROOT], 2.0)


def _held_by(store, holder, seconds=0.0):
    with sqlite3.connect(store.url) as connection:
        at = time.time() - seconds
        connection.execute("UPDATE claims SET holder = ?, at = ?", (holder.text, at))


def test_a_run_that_another_process_works_on_is_refused(store):
    run = store.start(SETTINGS, {})
    with subprocess.Popen(["sleep", "600"]) as other:
        _held_by(store, holder._of(other.pid))
        with pytest.raises(KernelError, match=f"process {other.pid} on .* works on run `{run}`"):
            store.resume(run)
        assert store.load(run).settings == SETTINGS, "to look at it is allowed"
        other.kill()
    assert store.resume(run).settings == SETTINGS


def test_a_run_that_another_process_took_over_is_not_written(store):
    run = store.start(SETTINGS, {})
    _held_by(store, replace(holder.here(), process=1))
    with pytest.raises(KernelError, match="is not this process's any more"):
        store.evaluated(run, ROOT.key, "abc", GOOD, 1.0)
    assert store.load(run).outcomes == {}


def test_folders_of_the_store_are_made(tmp_path):
    Store(str(tmp_path / "a" / "b" / "store.db")).close()
    assert (tmp_path / "a" / "b" / "store.db").exists()


def _below_a_file(folder: Path) -> str:
    (folder / "file").write_text("not a folder")
    return str(folder / "file" / "store.db")


def _a_folder(folder: Path) -> str:
    return str(folder)


def _another_file(folder: Path) -> str:
    (folder / "notes.txt").write_text("these are my notes, and not a database. " * 9)
    return str(folder / "notes.txt")


@pytest.mark.parametrize("place", [_below_a_file, _a_folder, _another_file])
def test_a_store_that_cannot_be_is_refused_with_a_remedy(place, tmp_path):
    path = place(tmp_path)
    before = sorted(tmp_path.rglob("*")), _texts(tmp_path)
    with pytest.raises(KernelError, match="the store cannot be") as caught:
        Store(path)
    assert "--store" in caught.value.hint
    assert path in caught.value.where
    assert (sorted(tmp_path.rglob("*")), _texts(tmp_path)) == before


def _texts(folder: Path) -> list[bytes]:
    return [f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()]


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(KernelError, match="the store cannot be"):
        Store(str(tmp_path / "store.db"))


@pytest.mark.parametrize("url", ["cloud://somewhere/db", "no such://driver"])
def test_a_url_that_means_nothing_is_refused(url):
    with pytest.raises(KernelError, match="not a store that can be used here"):
        Store(url)
