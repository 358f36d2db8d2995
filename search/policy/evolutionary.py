"""Evolutionary: parents from the archive by tournament; the best always has children."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from search.core.archive import Elite
from search.loop.state import Proposal, State
from search.policy.opening import opened
from search.policy.parameters import real, whole


@dataclass(frozen=True, slots=True)
class Evolutionary:
    """Changes the winner of a tournament between elites, or crosses it with another."""

    # The share of proposals for single steps from the best.
    elitism: float = real(0.5, 0.0, 1.0)
    crossed: float = real(0.25, 0.0, 1.0)  # share of the others that cross two parents
    tournament: int = whole(3, 1, 64)  # elites that are drawn for each tournament
    # The share of proposals whose operator the budget chooses; at least half if models are asked.
    open: float = real(0.0, 0.0, 1.0)
    step: str = "step"
    change: str = "mutate"
    cross: str = "crossover"

    def ask(self, state: State, count: int, rng: random.Random) -> Sequence[Proposal]:
        """`count` proposals; those from the best come first."""
        elites = list(state.archive)
        best = state.archive.best()
        if best is None:
            return [Proposal(self.change, (rng.choice(state.roots),)) for _ in range(count)]
        from_best = max(1, round(self.elitism * count))
        proposals = [Proposal(self.step, (best.candidate.key,)) for _ in range(from_best)]
        while len(proposals) < count:
            proposals.append(self._propose(elites, rng))
        return opened(proposals, self.open, state, rng)

    def _propose(self, elites: list[Elite], rng: random.Random) -> Proposal:
        one = self._winner(elites, rng)
        if len(elites) > 1 and rng.random() < self.crossed:
            two = self._winner([e for e in elites if e is not one], rng)
            return Proposal(self.cross, (one.candidate.key, two.candidate.key))
        return Proposal(self.change, (one.candidate.key,))

    def _winner(self, elites: list[Elite], rng: random.Random) -> Elite:
        drawn = rng.sample(elites, min(self.tournament, len(elites)))
        return max(drawn, key=lambda e: e.fitness)
