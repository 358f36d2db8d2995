"""A search that measures times tries neighbours first, and later in part."""

import random

from search.core.candidate import Candidate
from search.core.graph import Graph
from search.loop.opening import CANDIDATES, NEAR, NearFirst
from search.loop.state import Proposal, State


class Says:
    def ask(self, state, count, rng):
        return [Proposal("", ("a", "b")), Proposal("step", ("a",)), Proposal("", ("a",))] * count


def state(count):
    graph = Graph()
    every = [Candidate("f", f"schedule {n}", "chip", "tongue") for n in range(count + 1)]
    for one in every:
        graph.add(one)
    return State(1, graph, None, {}, (every[0].key,), (), None)


def asked(count):
    return NearFirst(Says()).ask(state(count), 100, random.Random(1))


def test_at_first_all_that_names_no_operator_is_for_what_lies_near_one_parent():
    found = asked(CANDIDATES - 1)
    assert {p.operator for p in found} == {NEAR, "step"}
    assert all(p.parents == ("a",) for p in found)


def test_later_a_part_of_it_is():
    found = asked(CANDIDATES)
    near = sum(p.operator == NEAR for p in found)
    assert 50 < near < 110 and sum(p.operator == "step" for p in found) == 100
    assert all(p.parents == ("a", "b") for p in found[::3] if not p.operator)
