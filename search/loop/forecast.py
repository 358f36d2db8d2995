"""The forecast: an estimate corrected by what became of candidates that are alike.

An estimate from the loop nest is wrong by much the same factor for schedules that share most of
their decisions. So the factor by which it was wrong is averaged over all that was evaluated, with
weights that fall with the number of decisions in which they differ (a Nadaraya-Watson regression
of the residuals).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from search.core.candidate import Candidate

REACH = 1.0  # decisions apart at which a neighbour counts 1/e of what a twin does
SCEPTICISM = 0.3  # of a twin: what the mean of all counts beside the neighbours
APART = 3.0  # decisions that other equations are apart, beside those that differ


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A candidate that was evaluated."""

    candidate: Candidate
    residual: float  # the logarithm of its time over the estimate


def correction(candidate: Candidate, neighbours: Sequence[Neighbour]) -> float:
    """The factor by which the estimate of a candidate is expected to be wrong; 1 for none."""
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
    """How many decisions two candidates differ in; a decision that is changed counts once."""
    equations = 0.0 if one.variant == other.variant else APART
    return equations + len(_decisions(one.schedule) ^ _decisions(other.schedule)) / 2


def neighbours(known: Iterable[tuple[Candidate, float, float]]) -> tuple[Neighbour, ...]:
    """Of candidates with their times and their estimates, both in us. A source of its own says
    nothing of its schedule, and is left out."""
    return tuple(Neighbour(c, math.log(us / est)) for c, us, est in known if c.source is None)


@lru_cache(maxsize=4096)
def _decisions(schedule: str) -> frozenset[str]:
    """The lines of a schedule's text."""
    return frozenset(schedule.splitlines())
