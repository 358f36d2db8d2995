"""The graph of a search. Nodes are candidates; an edge says which operator made a child of a
parent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from search.core.candidate import Candidate


@dataclass(frozen=True, slots=True)
class Edge:
    """`operator` made `child` from `parent`. rank: the position of this parent among the child's
    parents."""

    child: str
    parent: str
    rank: int
    operator: str
    note: str


class Graph:
    """Candidates by key, in the order in which they were added. A child follows its parents."""

    def __init__(self) -> None:
        self._nodes: dict[str, Candidate] = {}
        self._children: dict[str, list[str]] = {}
        self._nests: set[str] = set()

    def copy(self) -> Graph:
        """An independent copy with the same candidates."""
        other = Graph()
        other._nodes = dict(self._nodes)
        other._children = {key: list(keys) for key, keys in self._children.items()}
        other._nests = set(self._nests)
        return other

    def add(self, candidate: Candidate, nest: str = "") -> bool:
        """Adds a candidate. Returns False if its key is known; the first origin is kept.

        nest: digest of its lowered result, if known.
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
        """Whether a candidate with the same lowered result was added."""
        return nest in self._nests

    def __contains__(self, key: object) -> bool:
        return key in self._nodes

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self._nodes.values())

    def node(self, key: str) -> Candidate:
        """The candidate with a key. Raises KeyError if there is none."""
        return self._nodes[key]

    def children(self, key: str) -> tuple[Candidate, ...]:
        """The children of a candidate, in the order in which they were added."""
        return tuple(self._nodes[k] for k in dict.fromkeys(self._children[key]))

    def edges(self) -> Iterator[Edge]:
        """All edges, in the order in which the children were added."""
        for c in self._nodes.values():
            for rank, parent in enumerate(c.origin.parents):
                yield Edge(c.key, parent, rank, c.origin.operator, c.origin.note)

    def lineage(self, key: str) -> tuple[Candidate, ...]:
        """The path from a seed candidate to this one; each step is the parent that a child
        resembles most."""
        line = [self._nodes[key]]
        while line[-1].origin.parents:
            line.append(self._nodes[line[-1].origin.parents[0]])
        return tuple(reversed(line))
