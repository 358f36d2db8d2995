"""The interface of policies: the state that they see, and their proposals."""

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
    """The state of a search between two generations."""

    generation: int
    graph: Graph
    archive: Archive
    # By key, in the order of evaluation.
    outcomes: Mapping[str, Evaluated]
    roots: tuple[str, ...]  # keys of the candidates that are parents while the archive is empty
    # The axes of the archive, and the machine that they refer to.
    measures: tuple[Measure, ...] = ()
    machine: Machine | None = None
    # Cost of each operator that asks a model, in equivalent evaluations.
    spent: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposal for a child: the name of an operator, and the keys of the parents."""

    operator: str  # empty: the budget chooses one that takes this number of parents
    parents: tuple[str, ...]
    tag: str = ""  # for the origin of the child
    hint: str = ""  # words for an operator that asks a model


class Policy(Protocol):
    """Chooses parents and operators, and nothing else.

    The proposals depend only on the state and the state of the generator.
    """

    def ask(self, state: State, count: int, rng: random.Random) -> Sequence[Proposal]:
        """`count` proposals, followed by spare ones for proposals that fail. Parents are in the
        graph."""
