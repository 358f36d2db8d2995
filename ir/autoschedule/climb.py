"""Climb: from one choice for each of several things to the best, one thing after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, Self, TypeVar


class Comparable(Protocol):
    """What comes of a choice."""

    def beats(self, other: Self) -> bool:
        """Whether it is better."""


Outcome = TypeVar("Outcome", bound=Comparable)


def climb(
    start: tuple[int, ...], lengths: Sequence[int], at: Callable[[tuple[int, ...]], Outcome]
) -> Outcome:
    """From a point along one axis after the other to the best, until nothing gets better.

    lengths: how many choices there are along each axis.  at: what comes of a point.
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
