"""Greedy climbs from the fastest."""

import random

from search.core.archive import Archive
from search.core.candidate import Candidate
from search.core.evaluation import Evaluation, Failure
from search.core.graph import Graph
from search.loop.state import Proposal, State
from search.policy.greedy import Greedy

NAMES = ("a", "b", "c", "d")
NODES = {n: Candidate("spec", n, "chip", "tongue") for n in NAMES}


def state(times):
    """Candidates with these times; None: failed; left out: unknown."""
    graph = Graph()
    for c in NODES.values():
        graph.add(c)
    outcomes = {
        NODES[n].key: Failure("check", "wrong", "")
        if us is None
        else Evaluation(us, "modelled", "emulator")
        for n, us in times.items()
    }
    return State(1, graph, Archive((1,)), outcomes, (NODES["a"].key,))


def parents(proposals):
    names = {c.key: n for n, c in NODES.items()}
    return [names[key] for p in proposals for key in p.parents]


def test_every_step_starts_from_the_fastest_then_one_from_each_next():
    asked = Greedy(width=3).ask(state({"a": 3.0, "b": 1.0, "c": 2.0, "d": 4.0}), 2, random.Random())
    assert parents(asked) == ["b", "b", "c", "a"]
    assert {p.operator for p in asked} == {"step"}


def test_failures_have_no_children():
    asked = Greedy().ask(state({"a": 2.0, "b": None}), 1, random.Random())
    assert parents(asked) == ["a"]


def test_of_equals_the_older_comes_first():
    asked = Greedy(width=1).ask(state({"b": 1.0, "a": 1.0}), 1, random.Random())
    assert parents(asked) == ["a"]


def test_without_anything_correct_it_starts_from_the_roots():
    asked = Greedy().ask(state({"a": None}), 8, random.Random())
    assert asked == [Proposal("step", (NODES["a"].key,))]
