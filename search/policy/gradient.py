"""Gradients over the archive's cells: the direction in which children got fitter, entered the
archive, or found empty cells.

After KernelFoundry (arXiv 2603.12440): 0.4 dF + 0.4 dR + 0.2 dE, where older transitions decay by
0.95. The decay with the distance of a transition's start is our addition.
"""

from __future__ import annotations

from dataclasses import dataclass

from search.core.measures import Cell
from search.loop.state import State
from search.policy.grid import Grid

FITNESS, RATE, EXPLORATION, DECAY = 0.4, 0.4, 0.2, 0.95


@dataclass(frozen=True, slots=True)
class Transition:
    """The move of a child from its first parent's cell to its own."""

    start: Cell
    end: Cell
    gain: float  # in fitness
    entered: bool  # whether the child entered the archive


def transitions(state: State, found: Grid) -> list[Transition]:
    """The transitions of all correct children of correct parents, in the order of their
    outcomes."""
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
    """The combined gradient at a cell: a number for each measure, about -1 to 1.

    dF: the mean gain of transitions along the measure, with the sign of their direction. dR: the
    rate at which upward transitions entered the archive, minus that of downward ones. dE: the share
    of empty cells above, minus that below.
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
    """The share of empty cells from a cell along a measure to the border; 0 at the border."""
    line = range(at[axis] + 1, shape[axis]) if way > 0 else range(at[axis])
    cells = [(*at[:axis], n, *at[axis + 1 :]) for n in line]
    return sum(c not in held for c in cells) / len(cells) if cells else 0.0


def _weighted(at: Cell, history: list[Transition]) -> list[tuple[float, Transition]]:
    """Transitions with weights; recent and near ones count most."""
    last = len(history) - 1
    return [
        (DECAY ** (last - n) / (1 + sum(abs(a - b) for a, b in zip(at, t.start, strict=True))), t)
        for n, t in enumerate(history)
    ]


def _way(transition: Transition, axis: int) -> int:
    """1 for upward along a measure, -1 for downward, 0 for neither."""
    moved = transition.end[axis] - transition.start[axis]
    return (moved > 0) - (moved < 0)


def _mean(weighted: list[tuple[float, float]]) -> float:
    total = sum(w for w, _ in weighted)
    return sum(w * v for w, v in weighted) / total if total else 0.0
