"""Ranking: the correct candidates of a state, the fastest first."""

from __future__ import annotations

from search.core.evaluation import Evaluation
from search.loop.state import State


def ranked(state: State) -> list[str]:
    """Keys of what is correct, the fastest first; of equals the older first."""
    found = [
        (outcome.us, number, candidate.key)
        for number, candidate in enumerate(state.graph)
        if isinstance(outcome := state.outcomes.get(candidate.key), Evaluation)
    ]
    return [key for _, _, key in sorted(found)]


def standing(state: State) -> dict[str, float]:
    """How each correct candidate stands among all: 1 the fastest, towards 0 the slowest.

    By rank, so that it does not depend on how far times lie apart; of equals the older is ahead.
    """
    keys = ranked(state)
    return {key: 1 - place / len(keys) for place, key in enumerate(keys)}


def starts(state: State) -> tuple[str, ...]:
    """The roots to start from: those that are known to be correct, else all."""
    known = tuple(key for key in state.roots if isinstance(state.outcomes.get(key), Evaluation))
    return known or state.roots
