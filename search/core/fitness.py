"""Fitness: the speed-up of a candidate over a baseline; 0 if the candidate failed.

F = t_baseline / t_candidate, after KernelEvolve (arXiv 2512.23236).
"""

from __future__ import annotations

from dataclasses import dataclass

from search.core.evaluation import Evaluated, Failure, same_kind
from search.core.quantity import positive


@dataclass(frozen=True, slots=True)
class Baseline:
    """The time to compare with, in microseconds, and its kind."""

    us: float
    time_kind: str

    def __post_init__(self) -> None:
        if not positive(self.us):
            raise ValueError(f"a baseline must be positive and finite, not {self.us} us")


def fitness(evaluated: Evaluated, baseline: Baseline) -> float:
    """F of a candidate. Raises KernelError if the two times are of different kinds."""
    if isinstance(evaluated, Failure):
        return 0.0
    same_kind(evaluated.time_kind, baseline.time_kind)
    return baseline.us / evaluated.us
