"""The budget prefers operators with the most gain per cost, and untried ones."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.core.archive import Archive
from search.core.candidate import Candidate, Origin
from search.core.evaluation import Evaluation, Failure
from search.core.graph import Graph
from search.loop.budget import FADING, accounts, chances, choose
from search.loop.state import State

NAMES = ("step", "tune", "model")


def state(told, spent=None):
    """A root of 100 us, then its children: (operator, us), None for a failure."""
    graph, outcomes = Graph(), {}
    root = Candidate("spec", "root", "chip", "tongue")
    rows = [(root, 100.0)]
    for number, (operator, us) in enumerate(told):
        origin = Origin(operator, (root.key,))
        rows.append((Candidate("spec", str(number), "chip", "tongue", origin=origin), us))
    for candidate, us in rows:
        graph.add(candidate)
        failed = Failure("check", "wrong", "")
        outcomes[candidate.key] = Evaluation(us, "modelled", "emulator") if us else failed
    return State(1, graph, Archive((1,)), outcomes, (root.key,), spent=spent or {})


def test_at_first_all_have_the_same_chance():
    assert chances(state([]), NAMES) == pytest.approx(dict.fromkeys(NAMES, 1 / 3))


def test_who_gains_gets_more_and_who_was_not_tried_gets_as_much():
    told = [("step", 120.0), ("tune", 80.0)] * 4
    shares = chances(state(told), NAMES)
    assert shares["tune"] > 1.2 * shares["step"]
    assert shares["model"] >= shares["tune"]


def test_a_gain_over_the_best_counts_more_than_one_over_the_parent():
    told = [("step", 50.0), *[("tune", 60.0)] * 3, *[("step", 45.0)]]
    found = accounts(state(told))
    assert found["step"].rate > 3 * found["tune"].rate > 0


def test_failures_and_losses_gain_nothing():
    found = accounts(state([("step", None), ("tune", 150.0)]))
    assert found["step"].gain == found["tune"].gain == 0
    assert found["step"].cost == pytest.approx(FADING) and found["tune"].cost == 1


def test_what_helped_long_ago_fades():
    early = state([("step", 50.0), *[("tune", 60.0)] * 3])
    late = state([("step", 50.0), *[("tune", 60.0)] * 120])
    assert accounts(late)["step"].gain < 0.2 * accounts(early)["step"].gain


def test_what_a_model_takes_is_a_cost():
    told = [("tune", 90.0), ("model", 81.0)] * 5
    free = chances(state(told), NAMES)
    paid = chances(state(told, {"model": 50.0}), NAMES)
    assert paid["model"] < 0.5 * free["model"]


def test_what_a_model_takes_without_a_child_is_a_cost_too():
    told = [("tune", 90.0), ("step", 99.0)]
    shares = chances(state(told, {"model": 5.0}), NAMES)
    assert shares["model"] < shares["tune"]


def test_operators_are_drawn_as_their_chances_say():
    here = state([("step", 120.0), ("tune", 80.0)] * 4)
    rng = random.Random(0)
    drawn = [choose(here, NAMES, rng) for _ in range(4000)]
    for name, share in chances(here, NAMES).items():
        assert drawn.count(name) / len(drawn) == pytest.approx(share, abs=0.03)


@given(
    told=st.lists(st.tuples(st.sampled_from(NAMES), st.none() | st.floats(1e-3, 1e6))),
    spent=st.dictionaries(st.sampled_from(NAMES), st.floats(0, 1e6)),
    operators=st.lists(st.sampled_from(NAMES), min_size=1, unique=True),
    seed=st.integers(0, 99),
)
def test_in_any_state_each_has_a_chance_and_nothing_is_kept(told, spent, operators, seed):
    here = state(told, spent)
    shares = chances(here, operators)
    assert list(shares) == operators
    assert all(share > 0 for share in shares.values())
    assert sum(shares.values()) == pytest.approx(1)
    one, two = (choose(here, operators, random.Random(seed)) for _ in range(2))
    assert one == two in operators
