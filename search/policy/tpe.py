"""Plain TPE: what a tuner makes of the same space; a baseline, no policy to prefer."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from search.loop.state import Proposal, State


@dataclass(frozen=True, slots=True)
class Tpe:
    """Every proposal is one more trial of the space around the first candidate.

    No archive, no other operator, and no estimate that chooses among settings. Where no setting of all
    parameters is legal, a trial sets half of them, or fewer.
    """

    operator: str = "tpe"

    def ask(self, state: State, count: int, rng: random.Random) -> Sequence[Proposal]:
        """`count` trials."""
        return [Proposal(self.operator, (state.roots[0],)) for _ in range(count)]
