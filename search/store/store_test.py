"""The store keeps every event of every run, and says so when it cannot."""

import os
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from ir.errors import KernelError
from search.core.candidate import Candidate, Origin
from search.core.evaluation import Evaluation, Failure
from search.core.graph import Edge
from search.core.settings import Settings
from search.core.stored import StoredEvent, StoredExchange
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
    with sqlite3.connect(store.url.removeprefix("sqlite:///")) as connection:
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


def test_a_store_that_was_made_before_exchanges_takes_them(store):
    run = store.start(SETTINGS, {})
    with sqlite3.connect(store.url.removeprefix("sqlite:///")) as connection:
        connection.execute("DROP TABLE exchanges")
    later, exchange = Store(store.url), StoredExchange("d", 0, "request", "reply", 0.0)
    later.exchanged(run, exchange)
    assert later.exchanges(run) == (exchange,)


def test_a_store_with_runs_of_an_earlier_format_is_refused_and_left_as_it_is(store):
    store.start(SETTINGS, {})
    file = store.url.removeprefix("sqlite:///")
    with sqlite3.connect(file) as connection:
        connection.execute("DROP TABLE format")
    with pytest.raises(KernelError) as caught:
        Store(store.url)
    assert "runs of format 1" in str(caught.value) and caught.value.where == store.url
    assert "--store" in caught.value.hint
    with sqlite3.connect(file) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        assert "format" not in names
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == (1,)


def test_a_store_of_an_earlier_format_without_runs_is_taken(store):
    with sqlite3.connect(store.url.removeprefix("sqlite:///")) as connection:
        connection.execute("DROP TABLE format")
    again = Store(store.url)
    assert again.load(again.start(SETTINGS, {})).settings == SETTINGS


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
