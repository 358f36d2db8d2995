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
    """A search between two generations.

    roots: keys of the candidates that may be parents while the archive is empty.  outcomes:
    what became of each candidate, by key, in the order of telling.  measures, machine: the axes
    of the archive, and what they are relative to.  spent: tokens that each operator has used.
    """

    generation: int
    graph: Graph
    archive: Archive
    outcomes: Mapping[str, Evaluated]
    roots: tuple[str, ...]
    measures: tuple[Measure, ...] = ()
    machine: Machine | None = None
    spent: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Proposal:
    """Let an operator, by its name, make a child of these parents, by their keys.

    operator: empty where the budget chooses one that takes so many parents.  tag: is kept in
    the child's origin.  hint: words for an operator that reads, such as where to look next.
    """

    operator: str
    parents: tuple[str, ...]
    tag: str = ""
    hint: str = ""


class Policy(Protocol):
    """Chooses parents and operators, and nothing else.

    The same state and a generator in the same state give the same proposals.
    """

    def ask(self, state: State, count: int, rng: random.Random) -> Sequence[Proposal]:
        """`count` proposals, and behind them spare ones for what comes to nothing; parents are in
        the graph."""
