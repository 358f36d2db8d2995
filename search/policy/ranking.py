"""Ranking: the correct candidates of a state, fastest first."""

from __future__ import annotations

from search.core.evaluation import Evaluation
from search.loop.state import State


def ranked(state: State) -> list[str]:
    """The keys of correct candidates, fastest first; of equals the older first."""
    found = [
        (outcome.us, number, candidate.key)
        for number, candidate in enumerate(state.graph)
        if isinstance(outcome := state.outcomes.get(candidate.key), Evaluation)
    ]
    return [key for _, _, key in sorted(found)]


def standing(state: State) -> dict[str, float]:
    """The rank of each correct candidate: 1 for the fastest, towards 0 for the slowest.

    Ranks do not depend on the ratios of times. Of equals the older ranks higher.
    """
    keys = ranked(state)
    return {key: 1 - place / len(keys) for place, key in enumerate(keys)}


def starts(state: State) -> tuple[str, ...]:
    """The roots to start from: those known to be correct, else all."""
    known = tuple(key for key in state.roots if isinstance(state.outcomes.get(key), Evaluation))
    return known or state.roots
