"""The budget: which operator gets the next evaluation, where a policy leaves that open."""

from __future__ import annotations

import random
from collections.abc import Sequence

from search.state import State


def choose(state: State, operators: Sequence[str], rng: random.Random) -> str:
    """One of the operators' names; the same state and generator give the same."""
    return rng.choice(list(operators))
