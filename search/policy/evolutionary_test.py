"""Evolutionary draws parents from the archive, and always includes the best."""

import random
from collections import Counter

import pytest

from search.core.archive import Archive, Elite
from search.core.candidate import Candidate
from search.core.evaluation import Evaluation
from search.core.graph import Graph
from search.loop.state import Proposal, State
from search.policy.evolutionary import Evolutionary

NODES = [Candidate("spec", str(n), "chip", "tongue") for n in range(6)]


def state(count):
    """An archive of `count` elites, of which the last is the fittest."""
    graph, archive = Graph(), Archive((6,))
    for n, c in enumerate(NODES[:count]):
        graph.add(c)
        archive.add(Elite((n,), c, Evaluation(9.0 - n, "modelled", "emulator"), 1.0 + n))
    return State(1, graph, archive, {}, (NODES[0].key,))


def test_the_same_generator_gives_the_same_proposals():
    asked = [Evolutionary().ask(state(6), 8, random.Random("1/1")) for _ in range(2)]
    assert asked[0] == asked[1]
    assert asked[0] != Evolutionary().ask(state(6), 8, random.Random("1/2"))


def test_the_best_has_its_share_and_at_least_one_child():
    best = Proposal("step", (NODES[5].key,))
    for elitism, least in ((0.0, 1), (0.5, 4)):
        asked = Evolutionary(elitism=elitism).ask(state(6), 8, random.Random(3))
        assert list(asked[:least]) == [best] * least
        assert len(asked) == 8


def test_crossover_takes_two_different_parents():
    asked = Evolutionary(elitism=0.0, crossed=1.0).ask(state(6), 50, random.Random(0))
    crossed = [p for p in asked if p.operator == "crossover"]
    assert len(crossed) == 49
    assert all(len(set(p.parents)) == 2 for p in crossed)


def test_one_elite_is_not_crossed_with_itself():
    asked = Evolutionary(crossed=1.0).ask(state(1), 8, random.Random(0))
    key = NODES[0].key
    assert set(asked) == {Proposal("step", (key,)), Proposal("mutate", (key,))}


def test_a_larger_tournament_favours_the_fit():
    def mean(size):
        asked = Evolutionary(0.0, 0.0, tournament=size).ask(state(6), 600, random.Random(5))
        ranks = {c.key: n for n, c in enumerate(NODES)}
        drawn = Counter(ranks[p.parents[0]] for p in asked[1:])
        return sum(rank * n for rank, n in drawn.items()) / sum(drawn.values())

    assert mean(1) == pytest.approx(2.5, abs=0.4)
    assert mean(4) > mean(1) + 1
    assert mean(6) == 5


def test_an_empty_archive_leaves_the_roots():
    asked = Evolutionary().ask(state(0), 3, random.Random(0))
    assert asked == [Proposal("mutate", (NODES[0].key,))] * 3
