"""Epsilon-greedy keeps to the fastest, except for the given share."""

import random
from collections import Counter

import pytest

from search.policy.epsilon_greedy import EpsilonGreedy
from search.policy.states import made, names

FOUR = [("a", 3.0, ""), ("b", 1.0, "a"), ("c", None, "b"), ("d", 2.0, "b"), ("e", 4.0, "d")]


@pytest.mark.parametrize("epsilon, expected", [(0.0, 1.0), (0.4, 0.7), (1.0, 0.25)])
def test_the_fastest_has_its_share(epsilon, expected):
    state = made(FOUR)
    asked = EpsilonGreedy(epsilon).ask(state, 2000, random.Random(1))[:2000]
    drawn = Counter(names(state, [p.parents[0] for p in asked]))
    assert drawn["b"] / 2000 == pytest.approx(expected, abs=0.05)
    assert "c" not in drawn


def test_spare_proposals_are_of_the_next_fastest():
    state = made(FOUR)
    asked = EpsilonGreedy(0.0, width=3).ask(state, 2, random.Random(1))
    assert names(state, [p.parents[0] for p in asked]) == ["b", "b", "d", "a"]


def test_it_starts_from_the_roots():
    state = made([("a", None, ""), ("b", 0, "a")])
    asked = EpsilonGreedy().ask(state, 3, random.Random(1))
    assert names(state, [p.parents[0] for p in asked]) == ["a", "a", "a"]
