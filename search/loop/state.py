"""What a policy sees of a search, what it proposes, and the promise it keeps."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ir.machine import Machine
from search.core.archive import Archive
from search.core.evaluation import Evaluated
from search.core.graph import Graph
from search.core.measures import Measure


@dataclass(frozen=True, slots=True)
class State:
    """A search between two generations."""

    generation: int
    graph: Graph
    archive: Archive
    # By key, in the order of the evaluations.
    outcomes: Mapping[str, Evaluated]
    roots: tuple[str, ...]  # keys of the candidates that may be parents while the archive is empty
    # The axes of the archive, and the machine that they are relative to.
    measures: tuple[Measure, ...] = ()
    machine: Machine | None = None
    # What each operator that asks a model has taken, in evaluations that cost as much.
    spent: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A request for a child: the name of an operator, and the keys of the parents."""

    operator: str  # empty: the budget chooses one that takes this number of parents
    parents: tuple[str, ...]
    tag: str = ""  # for the origin of the child
    hint: str = ""  # words for an operator that asks a model


class Policy(Protocol):
    """Chooses parents and operators, and nothing else.

    The same state and a generator in the same state give the same proposals.
    """

    def ask(self, state: State, count: int, rng: random.Random) -> Sequence[Proposal]:
        """`count` proposals, and behind them spare ones for what comes to nothing; parents are in
        the graph."""
