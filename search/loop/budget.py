"""The budget: the choice of an operator for the next evaluation if the policy makes none.

A bandit on gain per cost. An operator's gain decays with every later evaluation, so an operator
that helped at the start is replaced by those that help now.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from search.core.evaluation import Evaluation
from search.loop.state import State

FADING = 0.985  # factor on gains and costs for each later evaluation
OVER_PARENT = 0.1  # weight of a gain over the parent, relative to a gain over the best so far
MOST_GAIN = 1.0  # of one child, so that a single jump at the start does not dominate
SHARP = 2.0  # exponent of the rate in the chance
HOPE = 1.0  # evaluations that each operator is credited with, at the best operator's rate


@dataclass(slots=True)
class Account:
    """The decayed gain and cost of an operator."""

    gain: float = 0.0
    cost: float = 0.0
    children: int = 0  # reported children, without decay

    @property
    def rate(self) -> float:
        """Gain per cost; 0 if nothing was spent."""
        return self.gain / self.cost if self.cost else 0.0


def choose(state: State, operators: Sequence[str], rng: random.Random) -> str:
    """Draws one of the operators' names. The result depends only on the state and the generator."""
    shares = chances(state, operators)
    return rng.choices(list(shares), list(shares.values()))[0]


def chances(state: State, operators: Sequence[str]) -> dict[str, float]:
    """The probability of each operator; all are above 0.

    It is proportional to the square of its gain per cost, after a credit of `HOPE` evaluations at
    the best operator's rate. So an operator without recent children is expected to do as well as
    the best.
    """
    known = accounts(state)
    found = {name: known.get(name, Account()) for name in operators}
    hope = max((account.rate for account in found.values()), default=0.0) or 1.0
    rates = {n: (a.gain + HOPE * hope) / (a.cost + HOPE) / hope for n, a in found.items()}
    weights = {name: rate**SHARP for name, rate in rates.items()}
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


def accounts(state: State) -> dict[str, Account]:
    """The account of each operator with reported children or with spent model time."""
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
        # Model cost decays like the cost of the operator's children, as if all took the same.
        faded = account.cost / account.children if account.children else 1.0
        account.cost += faded * evaluations
    return found


def _gains(state: State) -> Iterator[tuple[str, float]]:
    """The operator of each child and its gain, in the order of reports.

    A gain is the logarithm of a speed-up: over the best so far, plus a small part for the speed-up
    over the first parent. It is 0 if the child is slower or failed.
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
    """The gain, at most MOST_GAIN; 0 if one of the two times is infinite."""
    if math.isinf(us) or math.isinf(before) or us >= before:
        return 0.0
    return min(MOST_GAIN, math.log(before / us))
