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
    """A run starts, or resumes (`resumed`)."""

    run: str
    settings: Settings
    roofline_us: float
    # Of the evaluator: toolchain, sandbox, how times are obtained.
    environment: Mapping[str, Any]
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """A candidate is about to be evaluated."""

    number: int  # counts from 0 over the run
    generation: int
    candidate: Candidate


@dataclass(frozen=True, slots=True)
class Told:
    """The outcome of a candidate is known."""

    number: int
    generation: int
    candidate: Candidate
    outcome: Evaluated
    best_so_far: Evaluation | None  # the fastest correct candidate, this one included
    seconds: float
    replayed: bool = False  # from before a resume


@dataclass(frozen=True, slots=True)
class Improved:
    """A candidate is the fastest so far."""

    number: int
    candidate: Candidate
    evaluation: Evaluation
    # Over the first schedule; None: there is none.
    speedup: float | None
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Stopped:
    """The run ends, with a readable reason."""

    reason: str
    evaluations: int
    seconds: float
    resumable: bool = False  # whether the run can continue later


Event = Started | Asked | Told | Improved | Stopped
