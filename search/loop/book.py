"""The book of a run: its candidates and their outcomes, each stored before it is used.

It makes no choices; `generations.py` and `flow.py` do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ir.errors import KernelError
from ir.machine import Machine
from search.core.candidate import Candidate
from search.core.evaluation import Evaluated, Evaluation, Failure
from search.core.events import Asked, Event, Improved, Started, Stopped, Told
from search.core.fitness import Baseline
from search.core.graph import Graph
from search.core.lowered import spec_of
from search.core.measures import named
from search.core.model_use import ModelUse, Spent
from search.core.outcome import Outcome
from search.core.settings import Settings
from search.core.shape_dispatch import ShapeDispatch, shape_dispatch
from search.core.stored import Keeper, StoredEvent, StoredRun
from search.core.workload import bound_us, bounds_us
from search.loop.backend_view import BackendView, backend_views, merged
from search.loop.context import Context, Parent, nest_digest
from search.loop.hooks import Evaluator, Hurried
from search.loop.shape_view import ShapeView
from search.loop.state import Proposal
from search.loop.termination import Progress
from search.warm_start.first import PLAIN, first_candidates

# Suffix of the context for an outcome that was copied from a twin, so that no other run takes it
# for the candidate's own.
SAME = "/same"


class Book:
    """The state of a run.

    machines: the target as each backend describes it, by backend name. run: the name of a stored
    run to continue.
    """

    def __init__(
        self,
        settings: Settings,
        evaluator: Evaluator,
        store: Keeper,
        machines: Mapping[str, Machine],
        run: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.settings = settings
        self.evaluator = evaluator
        self.store = store
        self.spec = spec_of(settings.spec)
        # for everything that does not depend on a backend
        self.machine = machines[settings.backends[0]]
        self.roofline_us = bound_us(self.spec, self.machine, settings.shapes)
        self.graph = Graph()
        self.outcomes: dict[str, Evaluated] = {}  # reported outcomes, in that order
        self.best: tuple[Candidate, Evaluation] | None = None
        self.roots = first_candidates(settings, self.spec, machines)
        self.views = backend_views(
            settings, self.spec, machines, self.roots, self.graph, named(settings.measures)
        )
        self.told = 0
        self.record = self._resumed(run) if run else None
        self.known: dict[str, Evaluated] = dict(self.record.outcomes) if self.record else {}
        self.run = run or ""
        self._gain_at = 0
        self._baseline: Baseline | None = None
        self._clock = clock
        self._same = set(self.record.keys("same") if self.record else ())
        self._told_at = _told_at(self.record)
        self._before = self.record.seconds if self.record else 0.0
        self._began = 0.0
        self.on_event: Callable[[Event], None] = lambda event: None

    def begin(self, on_event: Callable[[Event], None]) -> None:
        """Starts or continues the run."""
        self.on_event = on_event
        self._began = self._clock()
        if not self.run:
            self.run = self.store.start(self.settings, self.evaluator.environment)
        started = (self.run, self.settings, self.roofline_us, self.evaluator.environment)
        on_event(Started(*started, resumed=self.record is not None))

    def end(self, reason: str) -> None:
        """Stops the run."""
        self.log("stopped", "", reason)
        self.on_event(Stopped(reason, self.told, self.seconds()))

    def log(self, kind: str, key: str, detail: str = "") -> None:
        """Adds an entry to the run's log."""
        self.store.log(self.run, StoredEvent(kind, key, self.seconds(), detail))

    def add(self, candidate: Candidate) -> bool:
        """Adds a candidate to the graph. Returns False if it is known."""
        machine = self.views[candidate.backend].machine
        for shape in self.settings.shapes:
            try:
                nest = nest_digest(candidate, machine, shape.sizes)
            except KernelError:
                continue
            return self.graph.add(candidate, nest)
        return self.graph.add(candidate)

    def context(self, view: BackendView, shape: ShapeView | None, proposal: Proposal) -> Context:
        """The context for an operator that makes a child for a backend."""
        known = shape.outcomes if shape else self.outcomes
        others = (v.transferred(self.run) for v in self.views.values() if v is not view)
        return Context(
            self.spec,
            view.machine,
            shape.sizes if shape else self.settings.sizes,
            tuple(Parent(self.graph.node(k), known.get(k)) for k in proposal.parents),
            self.graph,
            shape.outcomes if shape else view.outcomes,
            proposal.hint,
            () if shape else self.settings.workload,
            (*self.settings.transferred, *(found for found in others if found)),
            view.backend,
        )

    def asked(self, number: int, generation: int, candidate: Candidate) -> None:
        """Reports that a candidate is about to be evaluated."""
        self.on_event(Asked(number, generation, candidate))

    def shared(self, first: str, twins: Sequence[Candidate]) -> list[Candidate]:
        """Copies a candidate's outcome to candidates with the same source. Returns those that need
        their own evaluation."""
        outcome = self.known[first]
        if isinstance(outcome, Failure) and outcome.by_chance:
            return list(twins)
        for twin in twins:
            self.log("same", twin.key, first)
            context = self.evaluator.contexts[twin.backend] + SAME
            self.file(twin, replace(outcome, seconds={}), context)
            self._same.add(twin.key)
        return []

    def file(self, candidate: Candidate, outcome: Evaluated, context: str = "") -> None:
        """Stores an outcome before it is reported. context: empty for the context of its
        backend."""
        where = context or self.evaluator.contexts[candidate.backend]
        self.store.evaluated(self.run, candidate.key, where, outcome, self.seconds())
        self.known[candidate.key] = outcome

    def tell(self, generation: int, candidate: Candidate) -> None:
        """Reports a candidate's stored outcome and updates the state."""
        outcome = self.known[candidate.key]
        number, seconds = self.told, self.seconds()
        earlier = self._told_at.get(candidate.key)
        replayed = earlier is not None
        if earlier is None:
            self.log("told", candidate.key)
        else:
            seconds = earlier
        self.told += 1
        improved = self._learn(candidate, outcome)
        best = self.best[1] if self.best else None
        self._hurry(candidate.backend)
        told = (number, generation, candidate, outcome, best, seconds)
        self.on_event(Told(*told, replayed=replayed))
        if improved and isinstance(outcome, Evaluation):
            self._gain_at = self.told
            first = self._us(self.roots[0])
            speedup = first / outcome.us if first else None
            self.on_event(Improved(number, candidate, outcome, speedup, replayed))

    def _hurry(self, backend: str) -> None:
        """Tells the evaluator the best time of a backend. Not if kernels share shapes: a candidate
        that is slow overall may be the fastest at one shape."""
        best = self.views[backend].best
        if isinstance(self.evaluator, Hurried) and best and self.settings.dispatch < 2:
            self.evaluator.fastest(backend, best[1].us)

    def _learn(self, candidate: Candidate, outcome: Evaluated) -> bool:
        """Adds an outcome to the state. Returns whether it is the fastest so far."""
        self.outcomes[candidate.key] = outcome
        if isinstance(outcome, Evaluation) and self._baseline is None:
            is_first = candidate.key == self.roots[0].key
            us = outcome.us if is_first else self.roofline_us
            self._baseline = Baseline(us, outcome.time_kind)
        improved = isinstance(outcome, Evaluation) and outcome.faster_than(
            self.best[1] if self.best else None
        )
        at_a_shape = self.views[candidate.backend].learn(candidate, outcome, self._baseline)
        if improved and isinstance(outcome, Evaluation):
            self.best = candidate, outcome
        # The kernels that share the shapes are of the best candidate's backend.
        if at_a_shape and (self.best is None or self.best[0].backend == candidate.backend):
            self._gain_at = self.told
        return improved

    def _resumed(self, run: str) -> StoredRun:
        record = self.store.resume(run)
        before = record.environment.get("contexts")
        if before != dict(self.evaluator.contexts):
            raise KernelError(
                f"run `{run}` was made with another machine file, toolchain or sizes, and its "
                "times cannot be compared with new ones",
                where="--resume",
                hint="start a new run; what still holds is taken from the store",
            )
        return record

    def missing(self, most: int) -> int:
        """The number of children that may still be asked for, at most `most`. All of them can be
        evaluated within the limit, so no model is paid for a child that is not."""
        limit = self.settings.evaluations
        return most if limit is None else min(most, limit - self.told)

    def progress(
        self, seconds: float, nothing_new: bool = False, spent: Spent | None = None
    ) -> Progress:
        """The progress of the run, for the rules of termination."""
        taken = spent or Spent()
        return Progress(
            evaluations=self.told,
            seconds=seconds,
            since_gain=self.told - self._gain_at,
            best_us=self.best[1].us if self.best else None,
            roofline_us=self.roofline_us,
            nothing_new=nothing_new,
            first_us=self._us(self.roots[0]),
            tokens=taken.tokens,
            cost=taken.cost or 0.0,
        )

    def seconds(self) -> float:
        """The working time of the run over all sessions, in seconds."""
        return self._before + self._clock() - self._began

    def seconds_left(self) -> float | None:
        """The seconds until the time limit; None if there is no limit."""
        if self.settings.seconds is None:
            return None
        return max(0.0, self.settings.seconds - self.seconds())

    def time_is_over(self) -> bool:
        """Whether no new work may begin."""
        return self.seconds_left() == 0.0

    def _us(self, candidate: Candidate) -> float | None:
        outcome = self.outcomes.get(candidate.key)
        return outcome.us if isinstance(outcome, Evaluation) else None

    def outcome(
        self, reason: str, fault: KernelError | None = None, models: ModelUse | None = None
    ) -> Outcome:
        """The outcome of the run. fault: the error that ended it early. models: its use of
        models."""
        plain = next((c for c in self.roots if c.origin.operator == PLAIN), None)
        failures: dict[str, int] = {}
        for found in self.outcomes.values():
            if isinstance(found, Failure) and not found.slow:
                failures[found.stage] = failures.get(found.stage, 0) + 1
        return Outcome(
            run=self.run,
            settings=self.settings,
            evaluations=self.told,
            failures=failures,
            first=self.roots[0],
            first_us=self._us(self.roots[0]),
            plain_us=self._us(plain) if plain else None,
            best=self.best[0] if self.best else None,
            evaluation=self.best[1] if self.best else None,
            roofline_us=self.roofline_us,
            stopped_because=reason,
            fault=fault,
            models=models,
            seconds=self.seconds(),
            archive=merged(view.archive for view in self.views.values()),
            graph=self.graph,
            outcomes=self.outcomes,
            bounds_us=bounds_us(self.spec, self.machine, self.settings.workload),
            dispatch=self._dispatch(),
            same_source=len(self._same),
            slow=sum(isinstance(o, Failure) and o.slow for o in self.outcomes.values()),
        )

    def _dispatch(self) -> ShapeDispatch | None:
        """The kernels that share the shapes; None if only one is allowed or none is correct."""
        if self.best is None or not self.views[self.best[0].backend].shapes:
            return None
        return shape_dispatch(self.settings, self.best[0], self.graph, self.outcomes)


def _told_at(record: StoredRun | None) -> dict[str, float]:
    """The run's working time at which each candidate was reported in an earlier session."""
    events = record.events if record else ()
    return {e.key: e.seconds for e in reversed(events) if e.kind == "told"}
