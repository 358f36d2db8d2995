"""A store is copied atomically with its lessons, and a wrong address is an error with code 2."""

import json

import pytest

from search.core.candidate import Candidate, Origin
from search.core.evaluation import Evaluation
from search.core.settings import Settings
from search.core.stored import StoredEvent
from search.prompt.document import Document
from search.store.store import Store
from testing.cli.place import Place

SETTINGS = Settings("rows", "def rows", "null", ("null",), {"M": 8})
ROOT = Candidate("spec", "root", "null", "null", origin=Origin("first"))
LESSON = Document("a-run", "idioms", "Title", "A sentence.\n", ("ir/lower/verbs.py",)).file_text
SERVER = "postgresql://user:secret@127.0.0.1:1/db"


@pytest.fixture
def place(tmp_path):
    found = Place(tmp_path, "null")
    store = Store(str(found.work / "a.db"))
    run = store.start(SETTINGS, {})
    store.asked(run, 0, [ROOT], 0.0)
    store.evaluated(run, ROOT.key, "abc", Evaluation(1.0, "modelled", "emulator"), 1.0)
    store.log(run, StoredEvent("stopped", "", 1.0, "enough"))
    store.close()
    (found.work / "lessons").mkdir()
    (found.work / "lessons" / "a-run.md").write_text(LESSON)
    return found


def _copied(place, to, *words):
    return place.run_here("--store=a.db", f"--copy-store={to}", *words)


def test_a_store_is_copied_with_its_lessons(place):
    (place.work / "there").mkdir()
    code, out, err = _copied(place, "there/b.db", "--json")
    assert code == 0, err
    assert json.loads(out)["rows"] == {
        "secret": 0,
        "runs": 1,
        "nodes": 1,
        "edges": 0,
        "evaluations": 1,
        "events": 4,
        "exchanges": 0,
        "jobs": 0,
        "rounds": 0,
        "lessons": 1,
    }
    assert "events: 4 of 4 rows" in err
    there = place.work / "there"
    assert sorted(f.name for f in there.iterdir()) == ["b.db", "lessons"]
    assert (there / "lessons" / "a-run.md").read_text() == LESSON
    old, new = Store(str(place.work / "a.db")), Store(str(there / "b.db"))
    assert new.load("rows-null-1") == old.load("rows-null-1")
    new.resume("rows-null-1")
    for store in (old, new):
        store.close()


def test_what_would_be_replaced_is_refused(place):
    there = place.work / "there"
    (there / "lessons").mkdir(parents=True)
    (there / "lessons" / "a-run.md").write_text(LESSON.replace("sentence", "word"))
    before = place.files()
    for to, what in {
        "there/b.db": "has another lesson `a-run`",
        "a.db": "already exists",
    }.items():
        code, out, err = _copied(place, to)
        assert (code, out) == (2, "") and what in err
    assert place.files() == before


def test_a_store_at_work_is_refused(place):
    store = Store(str(place.work / "a.db"))
    store.resume("rows-null-1")
    code, out, err = _copied(place, "b.db")
    assert code == 2 and "works on run `rows-null-1`" in err
    store.close()


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ((f"--store={SERVER}", "--list-runs"), "the store cannot be used"),
        ((f"--store={SERVER}", "--show=run"), "the store cannot be used"),
        ((f"--store={SERVER}", "--resume=run"), "the store cannot be used"),
        ((f"--store={SERVER}", "--replay=run"), "the store cannot be used"),
        ((f"--store={SERVER}", "--copy-store=b.db"), "the store cannot be used"),
        (("--store=a.db", f"--copy-store={SERVER}"), "the store cannot be used"),
        ((f"--store={SERVER}", "--salvage=b.db"), "is no file"),
        (("--store=none.db", "--copy-store=b.db"), "there is no store in"),
        (("--store=mysql://user:secret@host/db", "--list-runs"), "no stores of kind `mysql`"),
        (("--store=postgresql://user:secret@host", "--list-runs"), "names no database"),
        ((f"--stoer={SERVER}",), "unrecognized arguments"),
        (("--store", "a.db", SERVER), "is not understood"),
        (("--copy-store=b.db", "--no-store"), "nothing is stored"),
    ],
)
def test_an_address_that_cannot_be_used_is_an_error(place, words, what):
    before = place.files()
    code, out, err = place.run_here(*words)
    assert (code, out) == (2, "") and what in err
    assert "secret" not in err
    assert place.files() == before
