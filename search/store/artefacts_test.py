"""Artefacts: large texts under their digests, written atomically; missing or damaged ones are
reported."""

import os
import sqlite3
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir.errors import KernelError
from search.core.candidate import Candidate, Origin
from search.core.settings import Settings
from search.core.stored import StoredEvent, StoredExchange
from search.store import artefacts
from search.store.artefacts import FRESH, LEAST, artefacts_at, read_source, read_text
from search.store.collecting import collect
from search.store.copying import copy_store
from search.store.salvage import salvage
from search.store.store import Store

SETTINGS = Settings("softmax", "def softmax", "chip", ("tongue",), {"M": 8})
LARGE = "int main() { return 0; }  // \N{GREEK SMALL LETTER MU}\n" * 1000
OWN = Candidate("spec", "plan", "chip", "tongue", LARGE, Origin("given"))
SMALL = Candidate("spec", "other", "chip", "tongue", None, Origin("given"))
SAID = StoredExchange("abc", 0, f'"{LARGE[:-1]}"', '"yes"', 1.0)
NONE = dict(lessons={}, refuse=lambda x: None, keep=lambda x: None, say=lambda x: None)


@pytest.fixture(params=["folder", "memory"])
def address(request, tmp_path):
    return str(tmp_path / "kept") if request.param == "folder" else f"memory://{uuid.uuid4()}/kept"


def filled(store):
    run = store.start(SETTINGS, {})
    store.asked(run, 0, [OWN, SMALL], 0.0)
    store.exchanged(run, SAID)
    store.log(run, StoredEvent("stopped", "", 1.0, "enough"))
    return run


def digests(found):
    return sorted(name.replace("/", "") for name in found.files.ages())


def test_a_large_text_lies_there_once_and_a_small_one_in_its_row(address):
    found = artefacts_at(address, "one")
    assert found.kept("x" * (LEAST - 1)) == "x" * (LEAST - 1) and digests(found) == []
    first, second = found.kept(LARGE), found.kept(LARGE)
    assert first == second == f"artefact sha256:{digests(found)[0]}"
    assert read_text(first, found) == LARGE and read_text("[1]", found) == "[1]"
    assert digests(artefacts_at(address, "another")) == []  # each store has its own folder


@given(text=st.text(), times=st.sampled_from([1, LEAST]))
def test_any_text_is_read_as_it_was(tmp_path_factory, text, times):
    found = artefacts_at(str(tmp_path_factory.getbasetemp() / "any"), "one")
    source = text * times
    table = found.kept_source({"source": source, "variant": "v"})
    assert read_source(table, found) == {"source": source, "variant": "v"}


def test_a_source_that_looks_like_a_reference_is_a_source(tmp_path):
    store = Store(str(tmp_path / "s.db"), artefacts=str(tmp_path / "kept"))
    odd = f"artefact sha256:{'0' * 64}"
    run = store.start(SETTINGS, {})
    store.asked(run, 0, [Candidate("s", "p", "chip", "tongue", odd)], 0.0)
    assert store.load(run).generations[0][0].source == odd


def test_what_is_missing_or_damaged_is_told(tmp_path):
    found = artefacts_at(str(tmp_path), "one")
    kept = found.kept(LARGE)
    (file,) = (tmp_path / "one").glob("*/*")
    file.write_bytes(file.read_bytes().replace(b"0", b"1", 1))
    with pytest.raises(KernelError, match="is damaged: its digest is") as caught:
        read_text(kept, found)
    assert caught.value.where == str(tmp_path / "one") and caught.value.hint
    file.unlink()
    with pytest.raises(KernelError, match=f"{kept[9:]} is missing"):
        read_text(kept, found)
    with pytest.raises(KernelError, match="is needed"):
        read_text(kept, None)


def test_a_write_that_fails_leaves_nothing_under_the_name(tmp_path, monkeypatch):
    found = artefacts_at(str(tmp_path), "one")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(artefacts.os, "fsync", full)
    with pytest.raises(KernelError, match="cannot be written: No space left"):
        found.kept(LARGE)
    assert all(name.endswith(".part") for name in found.files.ages())


def test_a_place_of_an_unknown_kind_is_refused_and_not_noted(tmp_path):
    file = str(tmp_path / "s.db")
    with pytest.raises(KernelError, match="cannot be reached") as caught:
        Store(file, artefacts="ftpx://user:word@host/there")
    assert "word" not in str(caught.value)
    assert Store(file).artefacts is None


def test_a_store_with_artefacts_holds_the_same_runs(tmp_path, address):
    plain, other = Store(str(tmp_path / "a.db")), Store(str(tmp_path / "b.db"), artefacts=address)
    run = filled(plain)
    assert filled(other) == run
    again = Store(str(tmp_path / "b.db"))  # which has stored their place
    for name in ("generations", "outcomes", "settings"):
        assert getattr(again.load(run), name) == getattr(plain.load(run), name)
    assert again.exchanges(run) == plain.exchanges(run) == (SAID,)
    assert len(digests(other.artefacts)) == 2
    with sqlite3.connect(tmp_path / "b.db") as connection:
        texts = connection.execute("select candidate from nodes").fetchall()
        texts += connection.execute("select request from exchanges").fetchall()
    assert max(len(text) for (text,) in texts) < 400


def test_a_copy_has_all_in_its_rows(tmp_path, address):
    filled(Store(str(tmp_path / "a.db")))
    filled(Store(str(tmp_path / "b.db"), artefacts=address))
    copy_store(str(tmp_path / "b.db"), str(tmp_path / "c.db"), **NONE)
    copy = Store(str(tmp_path / "c.db"))
    assert copy.artefacts is None and copy.exchanges("softmax-chip-1") == (SAID,)
    with sqlite3.connect(tmp_path / "a.db") as one, sqlite3.connect(tmp_path / "c.db") as other:
        for query in ("select * from nodes", "select * from exchanges"):
            assert one.execute(query).fetchall() == other.execute(query).fetchall()


def test_a_salvaged_store_refers_to_the_same(tmp_path):
    filled(Store(str(tmp_path / "a.db"), artefacts=str(tmp_path / "kept")))
    assert not salvage(tmp_path / "a.db", tmp_path / "b.db").lost
    found = Store(str(tmp_path / "b.db"))
    assert found.load("softmax-chip-1").generations == ((OWN, SMALL),)


def test_what_nothing_refers_to_is_removed_once_it_is_old(tmp_path):
    store = Store(str(tmp_path / "a.db"), artefacts=str(tmp_path / "kept"))
    run = filled(store)
    store.artefacts.kept(LARGE * 2)
    (tmp_path / "kept" / "half.part").write_bytes(b"")
    assert collect(store) == (0, 3)
    for file in (tmp_path / "kept").rglob("*/*/*"):
        os.utime(file, (0, file.stat().st_mtime - 2 * FRESH))
    assert collect(store) == (1, 2)
    assert store.load(run).generations == ((OWN, SMALL),) and store.exchanges(run) == (SAID,)
    store.resume(run)
    with sqlite3.connect(tmp_path / "a.db") as connection:  # as if another process worked on it
        connection.execute(
            "update claims set holder = replace(holder, 'host\": \"', 'host\": \"x')"
        )
    with pytest.raises(KernelError, match="works on run"):
        collect(store)
    with pytest.raises(KernelError, match="never told a place"):
        collect(Store(str(tmp_path / "other.db")))


def test_a_run_whose_artefact_lacks_says_so(tmp_path):
    store = Store(str(tmp_path / "a.db"), artefacts=str(tmp_path / "kept"))
    run = filled(store)
    (tmp_path / "kept").rename(tmp_path / "moved")
    for read in (store.load, store.exchanges):
        with pytest.raises(
            KernelError, match=f"run `{run}` cannot be read: the artefact"
        ) as caught:
            read(run)
        assert "--artefacts" in caught.value.hint
    moved = Store(str(tmp_path / "a.db"), artefacts=str(tmp_path / "moved"))
    assert moved.load(run).generations == ((OWN, SMALL),)
