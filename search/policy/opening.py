"""Opening: a share of a policy's proposals is left to the budget, which chooses the operator."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from search.loop.state import Proposal, State

WITH_MODELS = 0.5  # of the proposals, at least, where a model may be asked


def opened(
    proposals: Sequence[Proposal], share: float, state: State, rng: random.Random
) -> list[Proposal]:
    """The proposals, of which about a share (0 to 1) no longer name their operator."""
    share = max(share, WITH_MODELS if state.spent else 0.0)
    if not share:
        return list(proposals)
    return [replace(p, operator="") if rng.random() < share else p for p in proposals]
