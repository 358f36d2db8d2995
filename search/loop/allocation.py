"""Allocation: how the backends of a race share the evaluations of a generation.

First each backend has its seed schedules, and then as many children as any other. From then on most
evaluations go to the backend that is expected to be the fastest `AHEAD` evaluations later: its best
time, if it goes on to gain as it did lately. The others keep a floor, so that one which starts
slowly can still take over. A backend of which nothing is correct by then gets no more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from search.core.evaluation import Evaluated, Evaluation
from search.core.graph import Graph
from search.loop.budget import FADING, MOST_GAIN

AHEAD = 16  # evaluations
FLOOR = 0.25  # of a generation, for all backends but the leader together
TRIED = 4  # children, after which a backend has shown what it can do


@dataclass(frozen=True, slots=True)
class Standing:
    """How a backend stands."""

    backend: str
    children: int  # that were evaluated
    best_us: float  # infinite where nothing is correct
    # The logarithm by which its best time lately fell with each evaluation of a child.
    rate: float = 0.0

    @property
    def expected_us(self) -> float:
        """Its best time, `AHEAD` evaluations later."""
        return self.best_us * math.exp(-AHEAD * self.rate)


def standing(backend: str, graph: Graph, outcomes: Mapping[str, Evaluated]) -> Standing:
    """How a backend stands by the outcomes of its candidates, in the order of telling.

    A gain fades with every later evaluation, and one lucky jump counts for at most MOST_GAIN.
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
    """How many children of a generation each backend gets, the leader first; `count` in all.

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
