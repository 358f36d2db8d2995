"""A logarithmic scale: maps values to positions, and chooses marks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

STEPS = (1, 2, 5)
FEW = 3  # below this number of marks, finer steps are used
FINE = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
ROOM = 1.12  # factor by which the scale exceeds the values on either side


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps low..high to start..end logarithmically."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        span = math.log(self.high / self.low)
        along = math.log(value / self.low) / span
        return self.start + (self.end - self.start) * min(1.0, max(0.0, along))

    def marks(self) -> tuple[float, ...]:
        """Round values within the scale: 1, 2, 5, 10 ..., or finer if these are few."""
        coarse = self._marks(STEPS)
        return coarse if len(coarse) >= FEW else self._marks(FINE)

    def _marks(self, steps: tuple[float, ...]) -> tuple[float, ...]:
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        values = (step * 10.0**d for d in decades for step in steps)
        return tuple(v for v in values if self.low <= v <= self.high)


def scale_for(values: Iterable[float], start: float, end: float) -> Scale:
    """The scale that covers all `values` (at least one) with some margin."""
    known = tuple(values)
    return Scale(min(known) / ROOM, max(known) * ROOM, start, end)


def spread(wanted: list[float], gap: float) -> list[float]:
    """Positions near the wanted ones, in their order and at least `gap` apart."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed = list(wanted)
    for _ in range(len(wanted)):
        for above, below in zip(order, order[1:]):
            lack = gap - (placed[below] - placed[above])
            if lack > 0:
                placed[above] -= lack / 2
                placed[below] += lack / 2
    return placed
