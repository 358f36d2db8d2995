"""The readable part of a damaged store is copied, and the damaged store does not change."""

import sqlite3
from dataclasses import replace

import pytest

from ir.errors import KernelError
from search.core.candidate import Candidate, Origin
from search.core.evaluation import Evaluation
from search.core.settings import Settings
from search.core.stored import StoredEvent, StoredExchange
from search.store.salvage import salvage
from search.store.store import Store

SETTINGS = Settings("softmax", "def softmax", "chip", ("tongue",), {"M": 8})
ROOT = Candidate("spec", "root", "chip", "tongue", origin=Origin("first"))
GOOD = Evaluation(2.0, "simulated", "simulator")


@pytest.fixture
def runs(tmp_path):
    """The file of a store with three runs of forty candidates."""
    store = Store(str(tmp_path / "old.db"))
    for _ in range(3):
        run = store.start(SETTINGS, {"context": "abc"})
        asked = [replace(ROOT, schedule=f"schedule {n} " * 20) for n in range(40)]
        store.asked(run, 0, asked, 0.0)
        for each in asked:
            store.evaluated(run, each.key, "abc", GOOD, 1.0)
        store.exchanged(run, StoredExchange("d", 0, "{}", "reply", 0.1))
        store.log(run, StoredEvent("stopped", "", 2.0, "enough"))
    store.close()
    return tmp_path / "old.db"


def _changed(file, statement):
    with sqlite3.connect(file) as connection:
        connection.execute(statement)


def test_a_whole_store_is_copied_whole(runs, tmp_path):
    found = salvage(runs, tmp_path / "new.db")
    assert found.saved["runs"] == 3 and found.saved["evaluations"] == 120
    assert not found.lost and not found.unread
    old, new = Store(str(runs)), Store(str(tmp_path / "new.db"))
    for run in old.runs():
        assert new.load(run) == old.load(run)
        assert new.exchanges(run) == old.exchanges(run)
        new.resume(run)


def test_damaged_rows_are_left_out_and_counted(runs, tmp_path):
    _changed(runs, "UPDATE evaluations SET outcome = 'x' WHERE rowid IN (3, 4)")
    _changed(runs, "UPDATE runs SET settings = '{}' WHERE id = 'softmax-chip-2'")
    with pytest.raises(KernelError):
        Store(str(runs)).load("softmax-chip-1")
    found = salvage(runs, tmp_path / "new.db")
    assert found.lost["runs"] == 1 and found.lost["evaluations"] == 40 + 2
    new = Store(str(tmp_path / "new.db"))
    assert set(new.runs()) == {"softmax-chip-1", "softmax-chip-3"}
    assert len(new.load("softmax-chip-1").outcomes) == 38


def _page_of(file, text):
    """The offset of the page that has a text."""
    data = file.read_bytes()
    size = int.from_bytes(data[16:18], "big")
    return data.index(text) // size * size, size


def test_damaged_pages_lose_what_lies_on_them(runs, tmp_path):
    start, size = _page_of(runs, b"schedule 20 ")
    data = bytearray(runs.read_bytes())
    data[start : start + size] = b"\xff" * size
    runs.write_bytes(data)
    before = runs.read_bytes()
    found = salvage(runs, tmp_path / "new.db")
    assert found.unread == ("nodes",) and found.saved["runs"] == 3
    assert 60 < found.saved["nodes"] < 120
    assert runs.read_bytes() == before
    assert len(Store(str(tmp_path / "new.db")).load("softmax-chip-3").outcomes) == 40


def _nothing(file):
    file.write_bytes(b"these are notes, and no database " * 99)


def _no_store(file):
    file.unlink()
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE other (x)")


def _no_file(file):
    file.unlink()


@pytest.mark.parametrize("spoil", [_nothing, _no_store, _no_file])
def test_what_is_no_store_is_refused_and_nothing_is_made(runs, tmp_path, spoil):
    spoil(runs)
    with pytest.raises(KernelError):
        salvage(runs, tmp_path / "new.db")
    assert not [f for f in tmp_path.iterdir() if f.name.startswith(("new", ".salvage"))]


def test_a_file_that_is_there_is_not_replaced(runs, tmp_path):
    (tmp_path / "new.db").write_text("mine")
    with pytest.raises(KernelError, match="already exists"):
        salvage(runs, tmp_path / "new.db")
    assert (tmp_path / "new.db").read_text() == "mine"
