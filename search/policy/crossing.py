"""Crossing: the share of children with two parents."""

from __future__ import annotations

from search.loop.state import State

COMBINED = 0.25  # least share if a model may be asked, because it can combine


def share(asked: float, state: State) -> float:
    """The share that a policy's text sets; higher if a model may be asked."""
    return max(asked, COMBINED if state.spent else 0.0)
