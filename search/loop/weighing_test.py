"""The cost of a model's answer in evaluations follows the user's choice."""

import pytest

from ir.errors import KernelError
from search.core.model_use import Spent
from search.loop.weighing import Weighing, weighing

SPENT = Spent(tokens=40_000, cost=0.5, seconds=180.0)


@pytest.mark.parametrize(
    "text, evaluations",
    [
        ("time", 0.25),  # one of twelve requests in flight, three minutes long
        ("time:5", 3.0),
        ("money:0.25", 2.0),
        ("tokens", 2.0),
        ("tokens:10000", 4.0),
        ("none", 0.0),
    ],
)
def test_what_was_spent_is_counted_in_evaluations(text, evaluations):
    assert weighing(text).of(SPENT, requests=12) == pytest.approx(evaluations)


def test_a_cost_that_is_not_known_counts_for_nothing():
    assert Weighing("money", 1.0).of(Spent(5, None), 1) == 0.0


@pytest.mark.parametrize(
    "text", ["", "gold", "money", "none:3", "time:", "time:0", "time:-1", "tokens:x", "money:inf"]
)
def test_what_is_not_well_formed_is_refused_with_what_is(text):
    with pytest.raises(KernelError, match="money:AMOUNT"):
        weighing(text)
