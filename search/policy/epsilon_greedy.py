"""Epsilon-greedy: mostly the best candidate, sometimes any correct one."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from search.loop.state import Proposal, State
from search.policy.parameters import real, whole
from search.policy.ranking import ranked


@dataclass(frozen=True, slots=True)
class EpsilonGreedy:
    """Chooses the fastest as the parent with probability 1 - epsilon, else a random correct one."""

    epsilon: float = real(0.2, 0.0, 1.0)
    # How many of the fastest get a spare proposal each, for the case that the best has no new
    # child.
    width: int = whole(4, 1, 64)

    def ask(self, state: State, count: int, rng: random.Random) -> Sequence[Proposal]:
        """`count` proposals and spare ones; from the roots if nothing is correct."""
        keys = ranked(state)
        if not keys:
            return [Proposal("", (rng.choice(state.roots),)) for _ in range(count)]
        chosen = [
            rng.choice(keys) if rng.random() < self.epsilon else keys[0] for _ in range(count)
        ]
        return [Proposal("", (key,)) for key in (*chosen, *keys[1 : self.width])]
