"""A share of proposals is left to the budget; at least half if models are asked."""

import random
from dataclasses import replace

from search.loop.state import Proposal
from search.policy import policy
from search.policy.opening import opened
from search.policy.states import made

STATE = made([("a", 3.0, ""), ("b", 2.0, "a"), ("c", 1.0, "b")])
ASKED = replace(STATE, spent={"universal": 0})
NAMED = [Proposal("step", (STATE.roots[0],), tag="t")] * 400


def share(proposals):
    return sum(not p.operator for p in proposals) / len(proposals)


def test_nothing_is_opened_unless_asked_for_and_nothing_is_drawn_for_it():
    rng = random.Random(1)
    assert opened(NAMED, 0.0, STATE, rng) == NAMED
    assert rng.random() == random.Random(1).random()


def test_about_the_share_is_opened_and_all_else_stays():
    found = opened(NAMED, 0.25, STATE, random.Random(1))
    assert 0.15 < share(found) < 0.35
    assert all(p.tag == "t" and p.parents == NAMED[0].parents for p in found)


def test_where_models_are_asked_half_is_open():
    assert 0.4 < share(opened(NAMED, 0.0, ASKED, random.Random(1))) < 0.6
    for name in ("greedy", "evolutionary"):
        asked = policy(name).ask(ASKED, 200, random.Random(1))
        assert 0.3 < share(asked) < 0.7
        assert share(policy(name).ask(STATE, 200, random.Random(1))) == 0
        assert share(policy(f"{name},open=1").ask(STATE, 200, random.Random(1))) > 0.9
