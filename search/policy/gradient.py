"""Gradients over the archive's cells: which way children got fitter, entered, or found room.

After KernelFoundry (arXiv 2603.12440): 0.4 dF + 0.4 dR + 0.2 dE, older transitions decaying by
0.95. That a transition counts less the further away it began is ours.
"""

from __future__ import annotations

from dataclasses import dataclass

from search.core.measures import Cell
from search.loop.state import State
from search.policy.grid import Grid

FITNESS, RATE, EXPLORATION, DECAY = 0.4, 0.4, 0.2, 0.95


@dataclass(frozen=True, slots=True)
class Transition:
    """A child's way from its first parent's cell."""

    start: Cell
    end: Cell
    gain: float  # in fitness
    entered: bool  # the archive


def transitions(state: State, found: Grid) -> list[Transition]:
    """All children that are correct, of parents that are, in the order of telling."""
    arrivals = {a.key: a for a in found.arrivals}
    made = []
    for arrival in found.arrivals:
        parents = state.graph.node(arrival.key).origin.parents
        parent = arrivals.get(parents[0]) if parents else None
        if parent is not None:
            gain = arrival.fitness - parent.fitness
            made.append(Transition(parent.cell, arrival.cell, gain, arrival.entered))
    return made


def gradient(at: Cell, found: Grid, history: list[Transition]) -> tuple[float, ...]:
    """The combined gradient at a cell, a number for each measure, each about -1 to 1.

    dF: the mean gain of transitions along the measure, with the sign of their direction.  dR:
    how much of those upward entered the archive, less how much of those downward.  dE: the share
    of empty cells above, less that below.
    """
    held = {h.cell for h in found.holders}
    near = _weighted(at, history)
    return tuple(
        FITNESS * _gains(near, axis)
        + RATE * (_entered(near, axis, 1) - _entered(near, axis, -1))
        + EXPLORATION
        * (_empty(at, axis, found.shape, held, 1) - _empty(at, axis, found.shape, held, -1))
        for axis in range(len(found.shape))
    )


def _gains(near: list[tuple[float, Transition]], axis: int) -> float:
    return _mean([(w, _way(t, axis) * t.gain) for w, t in near if _way(t, axis)])


def _entered(near: list[tuple[float, Transition]], axis: int, way: int) -> float:
    return _mean([(w, float(t.entered)) for w, t in near if _way(t, axis) == way])


def _empty(at: Cell, axis: int, shape: tuple[int, ...], held: set[Cell], way: int) -> float:
    """The share of empty cells on the line from a cell along a measure; 0 at the border."""
    line = range(at[axis] + 1, shape[axis]) if way > 0 else range(at[axis])
    cells = [(*at[:axis], n, *at[axis + 1 :]) for n in line]
    return sum(c not in held for c in cells) / len(cells) if cells else 0.0


def _weighted(at: Cell, history: list[Transition]) -> list[tuple[float, Transition]]:
    """Transitions with their weights: the latest and nearest count most."""
    last = len(history) - 1
    return [
        (DECAY ** (last - n) / (1 + sum(abs(a - b) for a, b in zip(at, t.start, strict=True))), t)
        for n, t in enumerate(history)
    ]


def _way(transition: Transition, axis: int) -> int:
    """1 upward along a measure, -1 downward, 0 neither."""
    moved = transition.end[axis] - transition.start[axis]
    return (moved > 0) - (moved < 0)


def _mean(weighted: list[tuple[float, float]]) -> float:
    total = sum(w for w, _ in weighted)
    return sum(w * v for w, v in weighted) / total if total else 0.0
