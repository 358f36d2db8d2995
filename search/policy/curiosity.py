"""Curiosity: prefers cells whose elites recently had children that entered the archive."""

from __future__ import annotations

from search.core.measures import Cell
from search.loop.state import State
from search.policy.grid import Grid

START, GAIN, DECAY, LEAST = 1.0, 1.0, 0.8, 0.05


def curiosity(state: State, found: Grid) -> dict[Cell, float]:
    """The weight of each occupied cell as a parent.

    A cell starts with 1. A child that enters the archive adds 1. Any other child, and a failure,
    multiplies by 0.8, down to 0.05.
    """
    cells = {a.key: a.cell for a in found.arrivals}
    entered = {a.key for a in found.arrivals if a.entered}
    weights = {h.cell: START for h in found.holders}
    for key in state.outcomes:
        if key not in state.graph:
            continue
        for parent in state.graph.node(key).origin.parents:
            at = cells.get(parent)
            if at is None:
                continue
            now = weights.get(at, START)
            weights[at] = now + GAIN if key in entered else max(LEAST, DECAY * now)
    return {h.cell: weights[h.cell] for h in found.holders}
