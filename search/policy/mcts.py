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

    value: float = 0.0  # its own
    visits: int = 0  # of it and all that was made of it, as far as evaluated
    # Of their values.
    total: float = 0.0
    best: float = 0.0
    made: int = 0  # its children, with those of this ask
    children: list[str] = field(default_factory=list)  # those of them that are correct


@dataclass(frozen=True, slots=True)
class Mcts:
    """Goes down from the roots to the child of the greatest bound, until a node may have one more.

    A candidate is a child of the parent that it resembles most. Its value is how it stands among
    all that are correct, 1 the fastest, 0 where it failed; a node's is the best or the mean of all
    below it.
    """

    exploration: float = real(0.1, 0.0, 10.0)  # the c of value + c sqrt(ln N / n)
    value: str = word("best", "best", "mean")
    # A node of n visits has up to widening n^power children (progressive widening).
    widening: float = real(1.5, 0.1, 100.0)
    power: float = real(0.6, 0.0, 1.0)
    width: int = whole(4, 1, 64)  # how many of the fastest stand by
    # The share of proposals that name one of these as a second parent.
    crossed: float = real(0.0, 0.0, 1.0)

    def ask(self, state: State, count: int, rng: random.Random) -> Sequence[Proposal]:
        """`count` proposals, each counted as a visit for the next, and a spare one from each of
        the fastest."""
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
        """The node to make a child of; all on the way to it are visited once more."""
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
        """A node's value, its visits in this ask counted as no news."""
        if self.value == "best" or not node.visits:
            return node.best
        return node.total / node.visits

    def _best(
        self, tree: dict[str, _Node], keys: Sequence[str], visits: int, rng: random.Random
    ) -> str:
        """The key of the greatest bound; of equals one that is drawn."""
        bounds = {}
        for key in keys:
            node = tree[key]
            wide = math.sqrt(math.log(max(1, visits)) / max(1, node.visits))
            bounds[key] = self._worth(node) + self.exploration * wide
        most = max(bounds.values())
        return rng.choice([key for key, bound in bounds.items() if bound == most])
