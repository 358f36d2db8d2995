"""Events of a search, as values. The search stores an event before it acts on it or shows it."""

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
    # Of the evaluator: the toolchain, the sandbox, the kind of times.
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
    replayed: bool = False  # its outcome is from before a resume


@dataclass(frozen=True, slots=True)
class Improved:
    """A candidate is the fastest one so far."""

    number: int
    candidate: Candidate
    evaluation: Evaluation
    # Speed-up over the first schedule; None: its time is not known.
    speedup: float | None
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Stopped:
    """The run ends, for a readable reason."""

    reason: str
    evaluations: int
    seconds: float
    resumable: bool = False  # whether the run can continue later


Event = Started | Asked | Told | Improved | Stopped
