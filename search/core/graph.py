"""The graph of a search: nodes are candidates, edges say which operator made which child."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from search.core.candidate import Candidate


@dataclass(frozen=True, slots=True)
class Edge:
    """An operator made `child` of `parent` (and perhaps of others: `rank` counts them)."""

    child: str
    parent: str
    rank: int
    operator: str
    note: str


class Graph:
    """Candidates by key, in the order they were added; a child comes after its parents."""

    def __init__(self) -> None:
        self._nodes: dict[str, Candidate] = {}
        self._children: dict[str, list[str]] = {}
        self._nests: set[str] = set()

    def copy(self) -> Graph:
        """A graph of its own with the same candidates."""
        other = Graph()
        other._nodes = dict(self._nodes)
        other._children = {key: list(keys) for key, keys in self._children.items()}
        other._nests = set(self._nests)
        return other

    def add(self, candidate: Candidate, nest: str = "") -> bool:
        """Adds a candidate; False where its key is known (the first origin is kept).

        nest: digest of what it comes to, where that is known.
        """
        if candidate.key in self._nodes:
            return False
        for parent in candidate.origin.parents:
            assert parent in self._nodes, f"{candidate.key} has an unknown parent, {parent}"
            self._children[parent].append(candidate.key)
        self._nodes[candidate.key] = candidate
        self._children[candidate.key] = []
        self._nests.add(nest)
        return True

    def has_nest(self, nest: str) -> bool:
        """Whether a candidate that comes to the same was added."""
        return nest in self._nests

    def __contains__(self, key: object) -> bool:
        return key in self._nodes

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self._nodes.values())

    def node(self, key: str) -> Candidate:
        """The candidate with a key; KeyError where there is none."""
        return self._nodes[key]

    def children(self, key: str) -> tuple[Candidate, ...]:
        """What was made of a candidate, in order."""
        return tuple(self._nodes[k] for k in dict.fromkeys(self._children[key]))

    def edges(self) -> Iterator[Edge]:
        """Every edge, in the order the children were added."""
        for c in self._nodes.values():
            for rank, parent in enumerate(c.origin.parents):
                yield Edge(c.key, parent, rank, c.origin.operator, c.origin.note)

    def lineage(self, key: str) -> tuple[Candidate, ...]:
        """From a first candidate to this one, by the parent that each resembles most."""
        line = [self._nodes[key]]
        while line[-1].origin.parents:
            line.append(self._nodes[line[-1].origin.parents[0]])
        return tuple(reversed(line))
