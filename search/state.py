"""What a policy sees of a search, what it proposes, and the promise it keeps."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from search.archive import Archive
from search.evaluation import Evaluated
from search.graph import Graph


@dataclass(frozen=True, slots=True)
class State:
    """A search between two generations.

    roots: keys of the candidates that may be parents while the archive is empty.  outcomes:
    what became of each candidate, by key.
    """

    generation: int
    graph: Graph
    archive: Archive
    outcomes: Mapping[str, Evaluated]
    roots: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Proposal:
    """Let an operator, by its name, make a child of these parents, by their keys."""

    operator: str
    parents: tuple[str, ...]


class Policy(Protocol):
    """Chooses parents and operators, and nothing else.

    The same state and a generator in the same state give the same proposals.
    """

    def ask(self, state: State, count: int, rng: random.Random) -> Sequence[Proposal]:
        """Up to `count` proposals; parents are in the graph."""
