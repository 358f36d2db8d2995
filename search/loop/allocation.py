"""Allocation: how the backends of a race share the evaluations of a generation.

First each backend evaluates its seed schedules, then an equal number of children. After that most
evaluations go to the backend with the best expected time `AHEAD` evaluations later, if its recent
rate of gain continues. The others keep a floor, so that a slow starter can still take the lead. A
backend without a correct candidate by then gets no more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from search.core.evaluation import Evaluated, Evaluation
from search.core.graph import Graph
from search.loop.budget import FADING, MOST_GAIN

AHEAD = 16  # evaluations
FLOOR = 0.25  # of a generation, for all backends except the leader together
TRIED = 4  # children; after these a backend has had a fair trial


@dataclass(frozen=True, slots=True)
class Standing:
    """The progress of one backend."""

    backend: str
    children: int  # evaluated children
    best_us: float  # infinite if no candidate is correct
    # The recent decrease of the logarithm of its best time, for each evaluated child.
    rate: float = 0.0

    @property
    def expected_us(self) -> float:
        """Its expected best time after `AHEAD` more evaluations, in microseconds."""
        return self.best_us * math.exp(-AHEAD * self.rate)


def standing(backend: str, graph: Graph, outcomes: Mapping[str, Evaluated]) -> Standing:
    """The progress of a backend, from the outcomes of its candidates in the order of reports.

    A gain decays with every later evaluation. A single gain counts for at most MOST_GAIN.
    """
    best, gain, cost, children = math.inf, 0.0, 0.0, 0
    for key, outcome in outcomes.items():
        us = outcome.us if isinstance(outcome, Evaluation) else math.inf
        if graph.node(key).origin.parents:
            gained = math.log(best / us) if us < best < math.inf else 0.0
            gain = gain * FADING + min(MOST_GAIN, gained)
            cost = cost * FADING + 1.0
            children += 1
        best = min(best, us)
    return Standing(backend, children, best, gain / cost if cost else 0.0)


def shares(standings: Sequence[Standing], count: int) -> dict[str, int]:
    """The number of children that each backend gets, leader first; the sum is `count`.

    standings: at least one; of equals the first leads.
    """
    able = [s for s in standings if s.best_us < math.inf or s.children < TRIED]
    ranked = sorted(able or standings, key=lambda s: s.expected_us)
    leader, *others = (s.backend for s in ranked)
    if any(s.children < TRIED for s in ranked):
        floor = count - math.ceil(count / len(ranked))
    else:
        floor = max(len(others), round(FLOOR * count))
    floor = min(floor, count - 1) if others else 0
    each, more = divmod(floor, len(others)) if others else (0, 0)
    found = {leader: count - floor}
    found |= {name: each + (rank < more) for rank, name in enumerate(others)}
    return found
