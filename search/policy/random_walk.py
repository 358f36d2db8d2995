"""Random walk: pure random search, the baseline for every other policy."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from search.core.evaluation import Evaluation
from search.loop.state import Proposal, State
from search.policy.parameters import real
from search.policy.ranking import starts


@dataclass(frozen=True, slots=True)
class RandomWalk:
    """Walks from a root to random descendants, without regard to times."""

    # The probability of continuing to a correct child. At the end of the walk, an operator changes
    # decisions at random, without the estimate that others use.
    onward: float = real(0.75, 0.0, 1.0)
    operator: str = "walk"

    def ask(self, state: State, count: int, rng: random.Random) -> Sequence[Proposal]:
        """`count` proposals from the ends of walks."""
        return [Proposal(self.operator, (self._walk(state, rng),)) for _ in range(count)]

    def _walk(self, state: State, rng: random.Random) -> str:
        key = rng.choice(starts(state))
        while rng.random() < self.onward:
            correct = [
                c.key
                for c in state.graph.children(key)
                if isinstance(state.outcomes.get(c.key), Evaluation)
            ]
            if not correct:
                break
            key = rng.choice(correct)
        return key
