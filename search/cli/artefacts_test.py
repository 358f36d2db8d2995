"""Artefacts by the command: copied with the store, collected, and reported if missing."""

import json

import pytest

from search.core.candidate import Candidate, Origin
from search.core.settings import Settings
from search.core.stored import StoredEvent
from search.store.store import Store
from testing.cli.place import Place

SETTINGS = Settings("rows", "def rows", "null", ("null",), {"M": 8})
OWN = Candidate("spec", "root", "null", "null", "large " * 5000, Origin("first"))


@pytest.fixture
def place(tmp_path):
    found = Place(tmp_path, "null")
    store = Store(str(found.work / "a.db"), artefacts=str(found.work / "kept"))
    run = store.start(SETTINGS, {})
    store.asked(run, 0, [OWN], 0.0)
    store.log(run, StoredEvent("stopped", "", 1.0, "enough"))
    store.close()
    return found


def test_a_copy_needs_no_artefacts(place):
    code, _, err = place.run_here("--store=a.db", "--copy-store=b.db")
    assert code == 0, err
    (place.work / "kept").rename(place.work / "moved")
    assert Store(str(place.work / "b.db")).load("rows-null-1").generations == ((OWN,),)
    code, _, err = place.run_here("--store=a.db", "--copy-store=c.db")
    assert code == 2 and "is missing" in err and "--artefacts" in err
    assert not (place.work / "c.db").exists()
    code, _, err = place.run_here("--store=a.db", "--copy-store=c.db", "--artefacts=moved")
    assert code == 0, err


def test_what_nothing_needs_is_collected(place):
    code, out, err = place.run_here("--store=a.db", "--collect-artefacts", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert (found["removed"], found["left"]) == (0, 1)
    assert found["artefacts"].startswith(str(place.work / "kept"))


def test_a_run_that_cannot_be_read_is_listed_as_damaged(place):
    (place.work / "kept").rename(place.work / "moved")
    (row,) = json.loads(place.run_here("--store=a.db", "--list-runs", "--json")[1])["runs"]
    assert row["state"] == "damaged" and "is missing" in row["stopped_because"]


@pytest.mark.parametrize(
    "words, said",
    [
        (("--collect-artefacts", "--store=none.db"), "there is no store"),
        (("--collect-artefacts", "--no-store"), "nothing is stored"),
        (("--kernel=rows.kir", "--artefacts=kept", "--no-store"), "nothing is stored"),
        (("--kernel=rows.kir", "--artefacts=rows.kir", "--store=b.db"), "is a file"),
        (("--kernel=rows.kir", "--artefacts=nil://x", "--store=b.db"), "cannot be reached"),
    ],
)
def test_what_cannot_be_is_an_error_before_a_search(place, words, said):
    code, out, err = place.run_here("--target=null", *words)
    assert code == 2 and not out and said in err and "hint: " in err
