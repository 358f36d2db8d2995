"""Plain TPE: a standard tuner in the same space, as a baseline."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from search.loop.state import Proposal, State


@dataclass(frozen=True, slots=True)
class Tpe:
    """Proposes one more trial in the space around the first candidate each time.

    It uses no archive, no other operator, and no estimate that chooses among settings. If no
    setting of all parameters is legal, a trial sets half of them, or fewer.
    """

    operator: str = "tpe"

    def ask(self, state: State, count: int, rng: random.Random) -> Sequence[Proposal]:
        """`count` proposals for trials."""
        return [Proposal(self.operator, (state.roots[0],)) for _ in range(count)]
