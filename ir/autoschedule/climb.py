"""Coordinate descent over several discrete choices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, Self, TypeVar


class Comparable(Protocol):
    """The outcome of a point."""

    def beats(self, other: Self) -> bool:
        """Whether this outcome is better."""


Outcome = TypeVar("Outcome", bound=Comparable)


def climb(
    start: tuple[int, ...], lengths: Sequence[int], at: Callable[[tuple[int, ...]], Outcome]
) -> Outcome:
    """Coordinate descent: searches each axis in turn until none improves; returns the local
    optimum.

    lengths: the number of choices along each axis.
    at: the outcome of a point.
    """
    point, best = start, at(start)
    better = True
    while better:
        better = False
        for axis, length in enumerate(lengths):
            for n in range(length):
                other = (*point[:axis], n, *point[axis + 1 :])
                if at(other).beats(best):
                    point, best, better = other, at(other), True
    return best
