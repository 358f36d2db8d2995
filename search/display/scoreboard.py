"""The scoreboard: the state of a run for displays, updated by its events."""

from __future__ import annotations

from collections import Counter

from search.core import difference, provenance, quantity
from search.core.candidate import Candidate
from search.core.evaluation import Evaluation, Failure
from search.core.events import Asked, Event, Improved, Started, Stopped, Told
from search.warm_start.first import ALTERNATIVE, BROUGHT, ELSEWHERE, FIRST, GIVEN, PLAIN

FIRST_WORDS = {
    PLAIN: "the plain schedule",
    ALTERNATIVE: "the seed schedule of another algorithm",
    GIVEN: "the schedule that was given",
    ELSEWHERE: "the autoschedule at another shape",
    BROUGHT: "what another search found",
}


class Scoreboard:
    """The state of one run.

    trying: the candidates in evaluation, by number. failures: counts by stage. slow: number of
    candidates that were too slow to be checked. known: number of outcomes that were replayed from
    an earlier session.
    """

    def __init__(self) -> None:
        self.started: Started | None = None
        self.stopped: Stopped | None = None
        self.told = 0
        self.known = 0
        self.trying: dict[int, Candidate] = {}
        self.failures: Counter[str] = Counter()
        self.slow = 0
        self.last_failure = ""
        self.first_us: float | None = None
        self.plain_us: float | None = None
        self.best: Improved | None = None
        self._candidates: dict[str, Candidate] = {}

    def on_event(self, event: Event) -> None:
        """Updates the state by an event."""
        if isinstance(event, Started):
            self.started = event
        elif isinstance(event, Asked):
            self._candidates[event.candidate.key] = event.candidate
            self.trying[event.number] = event.candidate
        elif isinstance(event, Told):
            self._learn(event)
        elif isinstance(event, Improved):
            self.best = event
        elif isinstance(event, Stopped):
            self.trying.clear()
            self.stopped = event

    def edits(self, candidate: Candidate) -> str:
        """The changes of a candidate in one line: its difference from the first parent."""
        parents = [self._candidates.get(key) for key in candidate.origin.parents[:1]]
        if not parents or parents[0] is None:
            return FIRST_WORDS.get(candidate.origin.operator, "the autoschedule")
        return "; ".join(difference.lines(parents[0], candidate)) or "the same kernel"

    def verdict(self, failure: Failure, backend: str) -> str:
        """The stage of a failure, and how it was checked: `check by interpreter`."""
        said = provenance.here(self.started.environment, backend) if self.started else {}
        judge = said.get("correct_by") if failure.stage == "check" else None
        return f"{failure.stage} by {judge}" if judge else failure.stage

    @property
    def races(self) -> bool:
        """Whether the run has several backends."""
        return self.started is not None and len(self.started.settings.backends) > 1

    @property
    def kind(self) -> str:
        """The kind of the times; empty before the first."""
        return self.best.evaluation.time_kind if self.best else ""

    @property
    def best_us(self) -> float | None:
        """The best time so far."""
        return self.best.evaluation.us if self.best else None

    @property
    def roofline_share(self) -> float | None:
        """The share of the roofline that the best reaches."""
        return quantity.ratio(self.started.roofline_us if self.started else None, self.best_us)

    def _learn(self, event: Told) -> None:
        self.told += 1
        self.known += event.replayed
        self.trying.pop(event.number, None)
        self._candidates[event.candidate.key] = event.candidate
        outcome = event.outcome
        if isinstance(outcome, Failure) and outcome.slow:
            self.slow += 1
        elif isinstance(outcome, Failure):
            self.failures[outcome.stage] += 1
            stage = self.verdict(outcome, event.candidate.backend)
            self.last_failure = f"{stage}: {outcome.headline}"
        elif isinstance(outcome, Evaluation):
            operator = event.candidate.origin.operator
            if self.started and event.candidate.backend != self.started.settings.backends[0]:
                return
            if operator == FIRST:
                self.first_us = outcome.us
            elif operator == PLAIN:
                self.plain_us = outcome.us
