"""The forecast: an estimate of a time, corrected by the outcomes of similar candidates.

An estimate from the loop nest is wrong by about the same factor for schedules that share most
decisions. So the factor is averaged over all evaluated candidates, with weights that decrease with
the number of differing decisions (a Nadaraya-Watson regression of the residuals).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from search.core.candidate import Candidate

REACH = 1.0  # number of differing decisions at which a neighbour's weight is 1/e
SCEPTICISM = 0.3  # weight of the mean of all, relative to an identical candidate
APART = 3.0  # distance for different equations, in decisions


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An evaluated candidate."""

    candidate: Candidate
    residual: float  # logarithm of its time over its estimate


def correction(candidate: Candidate, neighbours: Sequence[Neighbour]) -> float:
    """The expected ratio of a candidate's time to its estimate; 1 without neighbours."""
    if not neighbours:
        return 1.0
    total = sum(n.residual for n in neighbours) / len(neighbours) * SCEPTICISM
    weights = SCEPTICISM
    for n in neighbours:
        weight = math.exp(-apart(candidate, n.candidate) / REACH)
        total += weight * n.residual
        weights += weight
    return math.exp(total / weights)


def apart(one: Candidate, other: Candidate) -> float:
    """The number of decisions in which two candidates differ. A changed decision counts once."""
    equations = 0.0 if one.variant == other.variant else APART
    return equations + len(_decisions(one.schedule) ^ _decisions(other.schedule)) / 2


def neighbours(known: Iterable[tuple[Candidate, float, float]]) -> tuple[Neighbour, ...]:
    """The neighbours of candidates with their times and estimates, both in microseconds. Edited
    sources are left out, because their schedules do not describe them."""
    return tuple(Neighbour(c, math.log(us / est)) for c, us, est in known if c.source is None)


@lru_cache(maxsize=4096)
def _decisions(schedule: str) -> frozenset[str]:
    """The lines of a schedule's text."""
    return frozenset(schedule.splitlines())
