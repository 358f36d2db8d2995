"""The budget: which operator gets the next evaluation, where a policy leaves that open.

A bandit on gain per cost. What an operator has gained fades with every evaluation told since, so
that one which helped at the start gives way to those that help now.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from search.core.evaluation import Evaluation
from search.loop.state import State

FADING = 0.985  # what is left of a gain, or a cost, after each further evaluation
OVER_PARENT = 0.1  # what a gain over the parent counts, beside one over the best so far
MOST_GAIN = 1.0  # of one child: one lucky jump at the start is not a reason for all that follows
SHARP = 2.0  # the power of a rate that a chance is in proportion to
HOPE = 1.0  # evaluations that an operator is credited with, each as good as the best operator's


@dataclass(slots=True)
class Account:
    """What an operator has gained and cost, faded."""

    gain: float = 0.0
    cost: float = 0.0
    children: int = 0  # how many were told, not faded

    @property
    def rate(self) -> float:
        """Gain per cost; 0 before anything was spent."""
        return self.gain / self.cost if self.cost else 0.0


def choose(state: State, operators: Sequence[str], rng: random.Random) -> str:
    """One of the operators' names; the same state and generator give the same."""
    shares = chances(state, operators)
    return rng.choices(list(shares), list(shares.values()))[0]


def chances(state: State, operators: Sequence[str]) -> dict[str, float]:
    """The probability of each operator, all above 0.

    In proportion to the square of its gain per cost, after `HOPE` evaluations are added that went
    as well as those of the best operator: what was not tried, or not lately, is expected to do as
    well.
    """
    known = accounts(state)
    found = {name: known.get(name, Account()) for name in operators}
    hope = max((account.rate for account in found.values()), default=0.0) or 1.0
    rates = {n: (a.gain + HOPE * hope) / (a.cost + HOPE) / hope for n, a in found.items()}
    weights = {name: rate**SHARP for name, rate in rates.items()}
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


def accounts(state: State) -> dict[str, Account]:
    """The account of each operator that has had children told, or has spent something on a model."""
    found = {name: Account() for name in state.spent}
    for operator, gain in _gains(state):
        for account in found.values():
            account.gain *= FADING
            account.cost *= FADING
        account = found.setdefault(operator, Account())
        account.gain += gain
        account.cost += 1.0
        account.children += 1
    for name, evaluations in state.spent.items():
        account = found[name]
        # What a child took fades as the child does: as if all had taken the same.
        faded = account.cost / account.children if account.children else 1.0
        account.cost += faded * evaluations
    return found


def _gains(state: State) -> Iterator[tuple[str, float]]:
    """The operator of each child and what it gained, in the order of telling.

    A gain is the logarithm of the ratio of two times: how much faster a child is than the best
    before it and, for a small part, than its first parent; 0 where it is slower or failed.
    """
    best = math.inf
    for key, outcome in state.outcomes.items():
        origin = state.graph.node(key).origin
        us = outcome.us if isinstance(outcome, Evaluation) else math.inf
        if origin.parents:
            parent = state.outcomes.get(origin.parents[0])
            of_parent = parent.us if isinstance(parent, Evaluation) else us
            yield origin.operator, _gain(best, us) + OVER_PARENT * _gain(of_parent, us)
        best = min(best, us)


def _gain(before: float, us: float) -> float:
    """At most MOST_GAIN; 0 without anything correct before, or now."""
    if math.isinf(us) or math.isinf(before) or us >= before:
        return 0.0
    return min(MOST_GAIN, math.log(before / us))
