"""The graph knows the parents and children of each candidate."""

import pytest

from search.core.candidate import Candidate, Origin
from search.core.graph import Edge, Graph


def made(name, *parents, operator="mutate"):
    keys = tuple(p.key for p in parents)
    return Candidate("spec", name, "chip", "tongue", origin=Origin(operator, keys, f"to {name}"))


ROOT = made("root")
CHILD = made("child", ROOT)
OTHER = made("other", ROOT)
MIXED = made("mixed", OTHER, CHILD, operator="crossover")


@pytest.fixture
def graph():
    graph = Graph()
    for c in (ROOT, CHILD, OTHER, MIXED):
        assert graph.add(c)
    return graph


def test_children_come_in_order(graph):
    assert graph.children(ROOT.key) == (CHILD, OTHER)
    assert graph.children(OTHER.key) == (MIXED,)
    assert graph.children(MIXED.key) == ()


def test_lineage_goes_by_the_first_parent_from_the_root(graph):
    assert graph.lineage(MIXED.key) == (ROOT, OTHER, MIXED)
    assert graph.lineage(ROOT.key) == (ROOT,)


def test_edges_say_which_operator_made_what(graph):
    assert list(graph.edges())[-2:] == [
        Edge(MIXED.key, OTHER.key, 0, "crossover", "to mixed"),
        Edge(MIXED.key, CHILD.key, 1, "crossover", "to mixed"),
    ]


def test_the_first_origin_of_a_key_stays(graph):
    again = made("child", OTHER)
    assert not graph.add(again)
    assert graph.node(CHILD.key).origin == CHILD.origin
    assert len(graph) == 4


def test_a_parent_must_be_there_first():
    with pytest.raises(AssertionError, match="unknown parent"):
        Graph().add(CHILD)


def test_what_two_schedules_come_to_is_remembered():
    graph = Graph()
    graph.add(ROOT, "nest")
    assert graph.has_nest("nest")
    assert not graph.has_nest("another")
