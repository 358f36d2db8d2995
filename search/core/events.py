"""What happens in a search, as values: stored first, then acted on and shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from search.core.candidate import Candidate
from search.core.evaluation import Evaluated, Evaluation
from search.core.settings import Settings


@dataclass(frozen=True, slots=True)
class Started:
    """A run begins, or goes on where it was stopped (`resumed`).

    environment: what the evaluator says of itself: toolchain, sandbox, how times are obtained.
    """

    run: str
    settings: Settings
    roofline_us: float
    environment: Mapping[str, Any]
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """A candidate is about to be evaluated. number: counts from 0 over the run."""

    number: int
    generation: int
    candidate: Candidate


@dataclass(frozen=True, slots=True)
class Told:
    """The search has learned what became of a candidate.

    best_so_far: the fastest correct one, this included.  replayed: known from before a resume.
    """

    number: int
    generation: int
    candidate: Candidate
    outcome: Evaluated
    best_so_far: Evaluation | None
    seconds: float
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Improved:
    """A candidate is the fastest so far. speedup: over the first schedule; None without one."""

    number: int
    candidate: Candidate
    evaluation: Evaluation
    speedup: float | None
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Stopped:
    """The run ends, and why in words. resumable: whether more could be done later."""

    reason: str
    evaluations: int
    seconds: float
    resumable: bool = False


Event = Started | Asked | Told | Improved | Stopped
