"""MAP-Elites: parents are elites of the archive's cells, selected in one of four ways."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from search.loop.state import Proposal, State
from search.policy.curiosity import curiosity
from search.policy.gradient import gradient, transitions
from search.policy.grid import Grid, Holder, grid, require
from search.policy.parameters import real

SELECTIONS = ("uniform", "fitness", "curiosity", "gradient")
LEAST = 0.05  # smallest weight of a cell


@dataclass(frozen=True, slots=True)
class MapElites:
    """Draws parents from the elites of the archive."""

    # The selection of elites. `uniform`: equal probability. `fitness`: in proportion to fitness.
    # `curiosity`: those whose children recently entered the archive. `gradient`: those with the
    # best expected step along a measure, which is then the proposal's hint.
    selection: str = "uniform"
    crossed: float = real(0.25, 0.0, 1.0)  # share of children with two parents

    def __post_init__(self) -> None:
        assert self.selection in SELECTIONS, f"no selection `{self.selection}`"
        require()

    def ask(self, state: State, count: int, rng: random.Random) -> Sequence[Proposal]:
        """`count` proposals; from the roots if nothing is correct."""
        found = grid(state)
        if not found.holders:
            return [Proposal("", (rng.choice(state.roots),)) for _ in range(count)]
        weights, hints = self._weights(state, found)
        return [self._propose(found, weights, hints, rng) for _ in range(count)]

    def _propose(
        self, found: Grid, weights: list[float], hints: list[str], rng: random.Random
    ) -> Proposal:
        numbers = range(len(found.holders))
        one = rng.choices(numbers, weights)[0]
        parents: tuple[str, ...] = (found.holders[one].key,)
        if len(numbers) > 1 and rng.random() < self.crossed:
            others = [n for n in numbers if n != one]
            two = rng.choices(others, [weights[n] for n in others])[0]
            parents = (*parents, found.holders[two].key)
        return Proposal("", parents, hint=hints[one])

    def _weights(self, state: State, found: Grid) -> tuple[list[float], list[str]]:
        """The weight of each elite as a parent, and the hints for their children."""
        silent = [""] * len(found.holders)
        if self.selection == "fitness":
            return [max(LEAST, h.fitness) for h in found.holders], silent
        if self.selection == "curiosity":
            known = curiosity(state, found)
            return [known[h.cell] for h in found.holders], silent
        if self.selection == "gradient":
            history = transitions(state, found)
            steps = [(h, gradient(h.cell, found, history)) for h in found.holders]
            best = [_steepest(h, slope, found.shape) for h, slope in steps]
            return [max(LEAST, promise) for promise, _ in best], [
                _words(state, h, way) for (h, _), (_, way) in zip(steps, best, strict=True)
            ]
        return [1.0] * len(found.holders), silent


def _steepest(
    holder: Holder, slope: tuple[float, ...], shape: tuple[int, ...]
) -> tuple[float, tuple[int, int]]:
    """The expected gain of the best step to a neighbouring cell, and that step: (measure, +1 or
    -1); (0, 0) if no step has a gain."""
    promises = [
        (way * slope[axis], (axis, way))
        for axis in range(len(shape))
        for way in (1, -1)
        if 0 <= holder.cell[axis] + way < shape[axis]
    ]
    best = max(promises, key=lambda p: p[0], default=(0.0, (0, 0)))
    return best if best[0] > 0 else (0.0, (0, 0))


def _words(state: State, holder: Holder, step: tuple[int, int]) -> str:
    """A step in words; empty if there is none."""
    axis, way = step
    if not way or not state.measures:
        return ""
    measure, here = state.measures[axis], holder.cell[axis]
    return (
        f"move towards {'more' if way > 0 else 'less'} {measure.name}: {measure.title} is "
        f"`{measure.labels[here]}`, try `{measure.labels[here + way]}`"
    )
