"""Opening: leaves the operator of some proposals to the budget."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from search.loop.state import Proposal, State

WITH_MODELS = 0.5  # least share of the proposals if a model may be asked


def opened(
    proposals: Sequence[Proposal], share: float, state: State, rng: random.Random
) -> list[Proposal]:
    """The proposals; about `share` (0 to 1) of them no longer name an operator."""
    share = max(share, WITH_MODELS if state.spent else 0.0)
    if not share:
        return list(proposals)
    return [replace(p, operator="") if rng.random() < share else p for p in proposals]
