"""Fitness: how many times faster than a baseline a candidate is; 0 where it failed.

F = t_baseline / t_candidate, after KernelEvolve (arXiv 2512.23236).
"""

from __future__ import annotations

from dataclasses import dataclass

from search.core.evaluation import Evaluated, Failure, same_kind
from search.core.quantity import positive


@dataclass(frozen=True, slots=True)
class Baseline:
    """What is raced against: its time in microseconds, and how that was obtained."""

    us: float
    time_kind: str

    def __post_init__(self) -> None:
        if not positive(self.us):
            raise ValueError(f"a baseline must be positive and finite, not {self.us} us")


def fitness(evaluated: Evaluated, baseline: Baseline) -> float:
    """F of a candidate; KernelError where the two times were obtained in different ways."""
    if isinstance(evaluated, Failure):
        return 0.0
    same_kind(evaluated.time_kind, baseline.time_kind)
    return baseline.us / evaluated.us
