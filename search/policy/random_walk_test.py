"""A random walk ignores times."""

import random
from collections import Counter

from search.policy.random_walk import RandomWalk
from search.policy.states import made, names

CHAIN = [("a", 5.0, ""), ("b", 1.0, "a"), ("c", 9.0, "a"), ("d", None, "a"), ("e", 2.0, "c")]


def drawn(policy, state, count=4000):
    asked = policy.ask(state, count, random.Random(3))
    assert {p.operator for p in asked} == {"walk"}
    return Counter(names(state, [p.parents[0] for p in asked]))


def test_children_are_as_likely_whatever_their_times():
    found = drawn(RandomWalk(onward=1.0), made(CHAIN))
    assert set(found) == {"b", "e"}
    assert abs(found["b"] - found["e"]) < 300


def test_it_may_end_anywhere_that_is_correct():
    assert set(drawn(RandomWalk(), made(CHAIN))) == {"a", "b", "c", "e"}


def test_without_going_on_it_stays_at_the_roots_that_are_known():
    state = made([("a", 1.0, ""), ("b", None, ""), ("c", 3.0, "")])
    assert set(drawn(RandomWalk(onward=0.0), state)) == {"a", "c"}
    assert set(drawn(RandomWalk(), made([("a", None, ""), ("b", 0, "")]))) == {"a", "b"}
