"""The run: ask, evaluate, report, until a rule stops it. A run that was killed at any point can
continue."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from ir.errors import KernelError
from ir.machine import Machine
from search.core.events import Event
from search.core.outcome import Outcome
from search.core.settings import Settings
from search.core.stored import Keeper, StoredEvent
from search.loop.book import Book
from search.loop.context import Halted, Operator
from search.loop.flow import Flow
from search.loop.generations import Generations
from search.loop.hooks import Evaluator, ModelHooks
from search.loop.jobs import Jobs, Threads
from search.loop.opening import NearFirst
from search.loop.script import Script
from search.loop.state import Policy
from search.loop.trials import Combinations
from search.loop.twins import Identity, Twins, none_known


class Search:
    """One search; `run` may be called once.

    - machines: by backend name, the target as that backend describes it.
    - models: shared access to models; required if an operator asks models.
    - run: the name of a stored run to continue. `settings` are then the stored ones, with limits
      that may be wider.
    - identity: of a candidate's source; a candidate takes the outcome of an earlier one with the
      same identity.
    - script: the log of a run whose order is followed.
    - workers: number of concurrent evaluations.
    - jobs: runs requests and evaluations; None: in threads.
    - combinations: chooses combinations for answers with parameters.
    """

    def __init__(
        self,
        settings: Settings,
        evaluator: Evaluator,
        store: Keeper,
        *,
        machines: Mapping[str, Machine],
        policy: Policy,
        operators: Mapping[str, Operator],
        models: ModelHooks | None = None,
        run: str | None = None,
        identity: Identity = none_known,
        clock: Callable[[], float] = time.monotonic,
        script: Sequence[StoredEvent] = (),
        workers: int = 1,
        jobs: Jobs | None = None,
        combinations: Combinations | None = None,
    ):
        self.book = Book(settings, evaluator, store, machines, run, clock)
        self.policy = policy
        self.operators = operators
        self.models = models
        self.workers = workers
        self._twins = Twins(identity)
        self._script = script
        self._jobs = jobs
        self._combinations = combinations

    def run(self, on_event: Callable[[Event], None] = lambda event: None) -> Outcome:
        """Searches until a rule or the user stops it. An interrupted run can be resumed."""
        book = self.book
        fault: KernelError | None = None
        book.begin(on_event)
        try:
            reason = self._searched()
        except KeyboardInterrupt:
            reason = "it was interrupted"
        except Halted as halted:
            reason = str(halted)
            fault = None if halted.spent else halted.error
        use = self.models.use(book.graph, book.outcomes) if self.models else None
        book.end(reason)
        return book.outcome(reason, fault, use)

    def _searched(self) -> str:
        book = self.book
        remote = any(operator.remote for operator in self.operators.values())
        if not remote and not self._measures():
            return Generations(book, self.policy, self.operators, self._twins).run()
        assert self.models is not None or not remote, "an operator asks models"
        if self.models is not None:
            self.models.begin(book.run)
        jobs = self._jobs or Threads(book.settings.requests, self.workers)
        script = Script(book.record.events, True) if book.record else Script(self._script)
        flow = Flow(
            book,
            self.policy if remote else NearFirst(self.policy),
            self.operators,
            self.models,
            self._twins,
            jobs,
            script,
            self._combinations,
            self.workers,
        )
        try:
            return flow.run()
        finally:
            if self.models is not None:
                self.models.close()
            jobs.end()

    def _measures(self) -> bool:
        """Whether times are measured. Evaluations then have different durations and no two runs are
        equal, so waiting for whole generations has no use."""
        said = self.book.evaluator.environment.get("backends", {})
        return any(each.get("time_kind") == "measured" for each in said.values())
