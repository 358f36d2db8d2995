"""Rows keep all data of a candidate, and give the generations back."""

from search.core.candidate import Candidate, Origin
from search.core.stored import StoredEvent
from search.store.rows import edge_rows, event_row, generations, node_row

CHILD = Candidate("spec", "text", "chip", "tongue", "source", Origin("cross", ("a", "b"), "note"))


def test_a_candidate_has_an_edge_to_each_parent_in_order():
    found = [(r["rank"], r["parent"], r["operator"], r["note"]) for r in edge_rows("run", CHILD)]
    assert found == [(0, "a", "cross", "note"), (1, "b", "cross", "note")]
    assert {r["child"] for r in edge_rows("run", CHILD)} == {CHILD.key}


def test_generations_come_back_from_their_rows():
    other = Candidate("spec", "other", "chip", "tongue")
    rows = [node_row("run", 0, 0, CHILD), node_row("run", 2, 0, other)]
    found = generations((r["generation"], r["candidate"]) for r in rows)
    assert found == ((CHILD,), (), (other,))
    assert found[0][0].origin == CHILD.origin


def test_an_event_is_a_row():
    row = event_row("run", StoredEvent("told", "key", 1.5, "detail"))
    assert row == {"run": "run", "kind": "told", "key": "key", "seconds": 1.5, "detail": "detail"}
