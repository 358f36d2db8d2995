"""The opening of a search that measures times: its first candidates are close to the seed
schedules.

A seed schedule is the best by a time model. Only measurements can distinguish schedules that the
model considers equal. With as many workers as cores, a large part of a short search is asked for
before much is known. So the first candidates, and a part of the later ones, are neighbours of their
parents.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from search.loop.state import Policy, Proposal, State

NEAR = "near"  # the operator that makes neighbours
CANDIDATES = 32  # candidates that are all neighbours
SHARE = 0.4  # share of neighbours among later candidates


@dataclass(frozen=True, slots=True)
class NearFirst:
    """A policy whose first proposals use the operator `near`, unless they name an operator."""

    policy: Policy

    def ask(self, state: State, count: int, rng: random.Random) -> Sequence[Proposal]:
        """The policy's proposals, some of them with the operator `near`."""
        asked = self.policy.ask(state, count, rng)
        share = 1.0 if len(state.graph) - len(state.roots) < CANDIDATES else SHARE
        return [
            replace(p, operator=NEAR, parents=p.parents[:1])
            if not p.operator and rng.random() < share
            else p
            for p in asked
        ]
