"""The opening of a search whose times are measured: its first candidates lie near what it starts from.

A first schedule is the best that a time model knows. What the model takes for equal is told apart by measuring, and
with as many workers as cores a good part of a short search is asked for before much is known. So the first candidates
are the ones next to it, and later ones in part.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from search.loop.state import Policy, Proposal, State

NEAR = "near"  # the operator that makes them
CANDIDATES = 32  # that all are
SHARE = 0.4  # of later ones


@dataclass(frozen=True, slots=True)
class NearFirst:
    """A policy whose first proposals are for schedules near their parent, where they name no other operator."""

    policy: Policy

    def ask(self, state: State, count: int, rng: random.Random) -> Sequence[Proposal]:
        """The policy's proposals."""
        asked = self.policy.ask(state, count, rng)
        share = 1.0 if len(state.graph) - len(state.roots) < CANDIDATES else SHARE
        return [
            replace(p, operator=NEAR, parents=p.parents[:1])
            if not p.operator and rng.random() < share
            else p
            for p in asked
        ]
