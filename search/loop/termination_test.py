"""Each rule fires at its limit and not before, and gives its reason."""

from dataclasses import replace

import pytest

from search.core.settings import Settings
from search.loop.termination import (
    CostLimit,
    Evaluations,
    Exhausted,
    Progress,
    RooflineShare,
    Seconds,
    Speedup,
    Stagnation,
    Tokens,
    first_reason,
    rules_of,
)

NOW = Progress(evaluations=10, seconds=5.0, since_gain=4, best_us=2.0, roofline_us=1.0)


@pytest.mark.parametrize(
    "rule, before, reason",
    [
        (Evaluations(10), {"evaluations": 9}, "10 evaluations were asked for and made"),
        (Seconds(5.0), {"seconds": 4.9}, "the 5 s it was given are over"),
        (Stagnation(4), {"since_gain": 3}, "no gain in the last 4 evaluations"),
        (RooflineShare(0.5), {"best_us": 2.1}, "50% of the roofline is reached"),
    ],
)
def test_a_rule_fires_at_its_limit(rule, before, reason):
    assert rule(NOW) == reason
    assert rule(replace(NOW, **before)) is None


def test_one_evaluation_is_said_to_be_one():
    said = Evaluations(1)(replace(NOW, evaluations=1))
    assert said == "1 evaluation was asked for and made"


def test_without_a_correct_candidate_no_roofline_is_reached():
    assert RooflineShare(0.0)(replace(NOW, best_us=None)) is None


def test_exhausted_when_nothing_is_new():
    assert Exhausted()(replace(NOW, nothing_new=True)) == "nothing new is left to try"
    assert Exhausted()(NOW) is None


def test_the_first_rule_that_fires_gives_the_reason():
    assert first_reason((Seconds(9.0), Stagnation(1), Evaluations(1)), NOW).startswith("no gain")
    assert first_reason((), NOW) is None


def test_settings_without_limits_have_no_rules_for_them():
    settings = Settings("k", "", "chip", ("tongue",), {}, evaluations=None, seconds=3.0)
    assert rules_of(settings) == (Seconds(3.0), RooflineShare(0.95))


def test_a_target_tokens_and_money_stop_a_search():
    so_far = Progress(1, 1.0, 0, 5.0, 1.0, first_us=10.0, tokens=100, cost=0.5)
    assert "2 times as fast" in Speedup(2.0)(so_far)
    assert Speedup(2.1)(so_far) is None
    assert Speedup(1.0)(replace(so_far, first_us=None)) is None
    assert "100 tokens" in Tokens(100)(so_far)
    assert Tokens(101)(so_far) is None
    assert "0.5" in CostLimit(0.5)(so_far)
    assert CostLimit(0.51)(so_far) is None
