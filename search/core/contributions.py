"""Contributions: the results of each operator's children."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from search.core.evaluation import Evaluated, Evaluation
from search.core.graph import Graph


@dataclass(frozen=True, slots=True)
class Contribution:
    """The results of one operator's children."""

    operator: str
    children: int
    correct: int  # number of correct children
    best: int  # number of children that were the fastest when their outcome was known
    # Largest speed-up of a child over its first parent; None: no pair is comparable.
    gain: float | None


def contributions(graph: Graph, outcomes: Mapping[str, Evaluated]) -> tuple[Contribution, ...]:
    """The contribution of each operator that made children, sorted by how often its children were
    the fastest.

    outcomes: in the order in which they were reported.
    """
    children: dict[str, list[Evaluated]] = {}
    gains: dict[str, list[float]] = {}
    leads: dict[str, int] = {}
    fastest: Evaluation | None = None
    for key, outcome in outcomes.items():
        origin = graph.node(key).origin
        if origin.parents:
            children.setdefault(origin.operator, []).append(outcome)
            before = outcomes.get(origin.parents[0])
            if isinstance(outcome, Evaluation) and isinstance(before, Evaluation):
                gains.setdefault(origin.operator, []).append(before.us / outcome.us)
        if isinstance(outcome, Evaluation) and outcome.faster_than(fastest):
            fastest = outcome
            leads[origin.operator] = leads.get(origin.operator, 0) + 1
    found = [
        Contribution(
            operator=name,
            children=len(told),
            correct=sum(isinstance(each, Evaluation) for each in told),
            best=leads.get(name, 0),
            gain=max(gains.get(name, ()), default=None),
        )
        for name, told in children.items()
    ]
    return tuple(sorted(found, key=lambda c: (-c.best, -c.children, c.operator)))
