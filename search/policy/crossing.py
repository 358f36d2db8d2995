"""Crossing: which share of children has two parents."""

from __future__ import annotations

from search.loop.state import State

COMBINED = 0.25  # at least, where a model may be asked: it can combine


def share(asked: float, state: State) -> float:
    """The share that a policy's wording asks for, more where a model may be asked."""
    return max(asked, COMBINED if state.spent else 0.0)
