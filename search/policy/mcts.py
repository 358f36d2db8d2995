"""MCTS: a tree search over the candidates, by upper confidence bounds (UCT, Kocsis 2006)."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from search.core.evaluation import Evaluation
from search.loop.state import Proposal, State
from search.policy.crossing import share
from search.policy.parameters import real, whole, word
from search.policy.ranking import ranked, standing, starts


@dataclass(slots=True)
class _Node:
    """A candidate in the tree."""

    value: float = 0.0  # its own value
    visits: int = 0  # evaluated candidates in its subtree, including itself
    # The sum and the maximum of their values.
    total: float = 0.0
    best: float = 0.0
    made: int = 0  # number of its children, including those of this call
    children: list[str] = field(default_factory=list)  # its correct children


@dataclass(frozen=True, slots=True)
class Mcts:
    """Descends from the roots to the child with the largest bound, until a node may have one more
    child.

    The tree parent of a candidate is the parent that it resembles most. The value of a candidate is
    its rank among all correct ones: 1 for the fastest, 0 if it failed. The value of a node is the
    best or the mean in its subtree.
    """

    exploration: float = real(0.1, 0.0, 10.0)  # c in value + c sqrt(ln N / n)
    value: str = word("best", "best", "mean")
    # A node with n visits has up to widening n^power children (progressive widening).
    widening: float = real(1.5, 0.1, 100.0)
    power: float = real(0.6, 0.0, 1.0)
    width: int = whole(4, 1, 64)  # number of the fastest that get spare proposals
    # The share of proposals with one of these as a second parent.
    crossed: float = real(0.0, 0.0, 1.0)

    def ask(self, state: State, count: int, rng: random.Random) -> Sequence[Proposal]:
        """`count` proposals, each of which counts as a visit for the next, followed by a spare one
        from each of the fastest."""
        tree = self._tree(state)
        roots = list(starts(state))
        chosen = [self._descend(tree, roots, rng) for _ in range(count)]
        fastest = ranked(state)[: self.width]
        crossed = share(self.crossed, state)
        pairs = [self._with_another(key, fastest, crossed, rng) for key in chosen]
        return [Proposal("", parents) for parents in (*pairs, *((key,) for key in fastest))]

    def _with_another(
        self, key: str, fastest: Sequence[str], crossed: float, rng: random.Random
    ) -> tuple[str, ...]:
        others = [other for other in fastest if other != key]
        if crossed and others and rng.random() < crossed:
            return (key, rng.choice(others))
        return (key,)

    def _tree(self, state: State) -> dict[str, _Node]:
        values = standing(state)
        tree = {c.key: _Node(values.get(c.key, 0.0)) for c in state.graph}
        for c in reversed(list(state.graph)):  # children before their parents
            node, outcome = tree[c.key], state.outcomes.get(c.key)
            if outcome is not None:
                node.visits += 1
                node.total += node.value
                node.best = max(node.best, node.value)
            if not c.origin.parents:
                continue
            above = tree[c.origin.parents[0]]
            above.visits += node.visits
            above.total += node.total
            above.best = max(above.best, node.best)
            above.made += 1
            if isinstance(outcome, Evaluation):
                above.children.insert(0, c.key)
        return tree

    def _descend(self, tree: dict[str, _Node], roots: list[str], rng: random.Random) -> str:
        """The node that gets a child. Counts a visit for all nodes on the path."""
        visits = sum(tree[key].visits for key in roots)
        key = self._best(tree, roots, visits, rng)
        path = [key]
        while tree[key].children and tree[key].made >= self._room(tree[key]):
            key = self._best(tree, tree[key].children, tree[key].visits, rng)
            path.append(key)
        tree[key].made += 1
        for node in (tree[visited] for visited in path):
            node.total += self._worth(node)
            node.visits += 1
        return key

    def _room(self, node: _Node) -> float:
        return self.widening * max(1, node.visits) ** self.power

    def _worth(self, node: _Node) -> float:
        """A node's value. Visits of this call do not change it."""
        if self.value == "best" or not node.visits:
            return node.best
        return node.total / node.visits

    def _best(
        self, tree: dict[str, _Node], keys: Sequence[str], visits: int, rng: random.Random
    ) -> str:
        """The key with the largest bound; of equals a random one."""
        bounds = {}
        for key in keys:
            node = tree[key]
            wide = math.sqrt(math.log(max(1, visits)) / max(1, node.visits))
            bounds[key] = self._worth(node) + self.exploration * wide
        most = max(bounds.values())
        return rng.choice([key for key, bound in bounds.items() if bound == most])
