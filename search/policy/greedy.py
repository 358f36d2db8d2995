"""Greedy: single changes of the best so far, and of the next best once those are used up."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from search.evaluation import Evaluation
from search.state import Proposal, State


@dataclass(frozen=True, slots=True)
class Greedy:
    """Climbs the steepest way it has seen: every proposal is one step from the fastest.

    width: how many of the fastest are offered in turn, so that the search goes on when all
    neighbours of the best were tried.
    """

    step: str = "step"
    width: int = 4

    def ask(self, state: State, count: int, rng: random.Random) -> Sequence[Proposal]:
        """`count` steps from the fastest; behind them one from each of the next."""
        ranked = self._ranked(state)
        if not ranked:
            return [Proposal(self.step, (key,)) for key in state.roots]
        best = [Proposal(self.step, (ranked[0],)) for _ in range(count)]
        return best + [Proposal(self.step, (key,)) for key in ranked[1 : self.width]]

    def _ranked(self, state: State) -> list[str]:
        """Keys of what is correct, the fastest first; of equals the older first."""
        found = [
            (outcome.us, number, candidate.key)
            for number, candidate in enumerate(state.graph)
            if isinstance(outcome := state.outcomes.get(candidate.key), Evaluation)
        ]
        return [key for _, _, key in sorted(found)]
