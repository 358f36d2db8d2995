"""MCTS balances the value of a branch against its number of visits."""

import random
from collections import Counter
from dataclasses import replace

import pytest

from search.policy.mcts import Mcts
from search.policy.states import made, names


def first(policy, state, count=1, seed=0):
    asked = policy.ask(state, count, random.Random(seed))[:count]
    return names(state, [p.parents[0] for p in asked])


def test_a_root_is_widened_before_it_is_gone_down_from():
    assert first(Mcts(widening=2.0), made([("a", 3.0, ""), ("b", 1.0, "a")])) == ["a"]


def test_the_better_branch_is_gone_down_without_exploration():
    lines = [("a", 3.0, ""), ("b", 2.0, "a"), ("c", 5.0, "a"), ("d", None, "c"), ("e", 1.0, "c")]
    narrow = Mcts(exploration=0.0, widening=0.1, power=0.0)
    assert first(narrow, made(lines)) == ["e"]
    mean = Mcts(exploration=0.0, widening=0.1, power=0.0, value="mean")
    assert first(mean, made(lines)) == ["b"]


def test_with_exploration_the_branch_that_was_visited_less_is_tried():
    lines = [("a", 3.0, ""), ("b", 1.0, "a"), ("c", 2.0, "a")]
    lines += [(f"b{n}", 4.0 + n, "b") for n in range(20)]
    state = made(lines)
    deep = {"widening": 0.1, "power": 0.0}
    assert first(Mcts(exploration=10.0, **deep), state) == ["c"]
    assert first(Mcts(exploration=0.0, **deep), state)[0].startswith("b")


def test_failures_are_never_gone_on_from():
    lines = [("a", 3.0, ""), ("b", None, "a"), ("c", 1.0, "b")]
    asked = Mcts(width=1).ask(made(lines), 8, random.Random(0))
    assert set(names(made(lines), [p.parents[0] for p in asked[:8]])) == {"a"}


def test_a_generation_spreads_as_each_proposal_counts_as_a_visit():
    lines = [("a", 3.0, "")] + [(n, 1.0 + ord(n), "a") for n in "bcdefg"]
    spread = Counter(first(Mcts(exploration=0.5), made(lines), count=8))
    assert len(spread) > 2


@pytest.mark.parametrize("seed", range(3))
def test_of_roots_that_stand_alike_any_is_taken(seed):
    state = made([("a", 0, ""), ("b", 0, "")])
    assert set(first(Mcts(), state, count=40, seed=seed)) == {"a", "b"}


def test_a_child_of_two_belongs_to_the_one_that_it_resembles():
    lines = [("a", 3.0, ""), ("b", 4.0, ""), ("c", 1.0, "b a")]
    narrow = Mcts(exploration=0.0, widening=0.1, power=0.0)
    assert first(narrow, made(lines)) == ["c"]
    tree = narrow._tree(made(lines))
    visits = {made(lines).graph.node(k).schedule: n.visits for k, n in tree.items()}
    assert visits == {"a": 1, "b": 2, "c": 1}


def test_a_share_is_crossed_with_one_of_the_fastest_where_asked_for_or_a_model_can_combine():
    lines = [("a", 9.0, ""), ("b", 2.0, "a"), ("c", 1.0, "a"), ("d", 8.0, "a")]
    state = made(lines)

    def seconds(policy, state):
        asked = policy.ask(state, 40, random.Random(0))[:40]
        return [names(state, p.parents[1:]) for p in asked]

    assert not any(seconds(Mcts(), state))
    found = seconds(Mcts(crossed=1.0, width=2), state)
    assert all(found) and {name for (name,) in found} == {"b", "c"}
    half = [bool(names) for names in seconds(Mcts(), replace(state, spent={"combine": 0}))]
    assert 2 < sum(half) < 25
    assert not any(seconds(Mcts(crossed=1.0), made([("a", 3.0, "")])))
