"""Greedy: single changes of the best candidate, and of the next best ones when those are used
up."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from search.loop.state import Proposal, State
from search.policy.opening import opened
from search.policy.parameters import real, whole
from search.policy.ranking import ranked


@dataclass(frozen=True, slots=True)
class Greedy:
    """Proposes single steps from the fastest candidate."""

    step: str = "step"
    # How many of the fastest get proposals, so that the search continues when all neighbours of the
    # best were tried.
    width: int = whole(4, 1, 64)
    # The share of proposals whose operator the budget chooses; at least half if models are asked.
    open: float = real(0.0, 0.0, 1.0)

    def ask(self, state: State, count: int, rng: random.Random) -> Sequence[Proposal]:
        """`count` steps from the fastest, followed by one from each of the next."""
        keys = ranked(state)
        if not keys:
            return [Proposal(self.step, (key,)) for key in state.roots]
        best = [Proposal(self.step, (keys[0],)) for _ in range(count)]
        next_best = [Proposal(self.step, (key,)) for key in keys[1 : self.width]]
        return [*opened(best, self.open, state, rng), *next_best]
