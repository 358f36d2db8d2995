"""Results by backend: a summary for each backend that a search has raced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from search.core import difference
from search.core.candidate import Candidate
from search.core.evaluation import Evaluation
from search.core.outcome import Outcome


@dataclass(frozen=True, slots=True)
class BackendResult:
    """The result of one backend in a race."""

    backend: str
    evaluated: int  # number of candidates with an outcome
    correct: int
    failed: int
    first: Candidate | None  # its autoschedule; None: no candidate of it was tried
    first_us: float | None  # microseconds; None: not correct
    # Its fastest correct candidate; None: there is none.
    best: Candidate | None
    evaluation: Evaluation | None

    @property
    def best_us(self) -> float | None:
        """The best time in microseconds; None if no candidate is correct."""
        return self.evaluation.us if self.evaluation else None

    @property
    def edits(self) -> tuple[str, ...]:
        """A line for each decision that differs between the best candidate and the autoschedule."""
        return difference.lines(self.first, self.best) if self.first and self.best else ()

    def table(self) -> dict[str, Any]:
        """The result as plain data."""
        return {
            "backend": self.backend,
            "evaluations": self.evaluated,
            "correct": self.correct,
            "failed": self.failed,
            "correct_by": self.evaluation.correct_by if self.evaluation else None,
            "first_us": self.first_us,
            "best_us": self.best_us,
            "schedule": self.best.schedule if self.best else None,
        }


def by_backend(outcome: Outcome) -> tuple[BackendResult, ...]:
    """A result for each backend of a run, in the order of its settings."""
    return tuple(backend_result(outcome, name) for name in outcome.settings.backends)


def backend_result(outcome: Outcome, backend: str) -> BackendResult:
    """The result of one backend of a run."""
    told = [
        (candidate, found)
        for key, found in outcome.outcomes.items()
        if (candidate := outcome.graph.node(key)).backend == backend
    ]
    right = [(c, o) for c, o in told if isinstance(o, Evaluation)]
    # The first candidate of a backend is its autoschedule.
    first = next((c for c in outcome.graph if c.backend == backend), None)
    before = outcome.outcomes.get(first.key) if first else None
    best = min(right, key=lambda each: each[1].us, default=(None, None))
    return BackendResult(
        backend=backend,
        evaluated=len(told),
        correct=len(right),
        failed=len(told) - len(right),
        first=first,
        first_us=before.us if isinstance(before, Evaluation) else None,
        best=best[0],
        evaluation=best[1],
    )
