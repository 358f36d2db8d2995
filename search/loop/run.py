"""The run: ask, evaluate, tell, until a rule says stop; killed at any point, it can go on.

A generation is asked as a whole, from a generator that its number and the seed fix, and told in
the order it was asked. What is found therefore depends neither on how many workers evaluate nor
on a stop in between: a resume replays what the store holds and asks the open generation again.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Protocol

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
from search.loop.allocation import shares, standing
from search.loop.asking import Asking, silenced
from search.loop.backend_view import BackendView, backend_views, merged
from search.loop.context import Context, GaveUp, Halted, Operator, Parent, nest_digest
from search.loop.requests import Requests
from search.loop.shape_view import ShapeView, in_turn
from search.loop.state import Policy, Proposal, State
from search.loop.termination import Exhausted, Progress, first_reason, rules_of
from search.loop.twins import Identity, Twins, none_known
from search.warm_start.first import FIRST as FIRST
from search.warm_start.first import PLAIN, first_candidates

# Of a context, where an outcome is another's: no other run takes it for the candidate's own.
SAME = "/same"
PORT = "port"  # the operator that brings the best over from another backend


class Evaluator(Protocol):
    """Finds out what becomes of candidates."""

    # By backend: digest of all that an outcome depends on beside the candidate: sizes, machine,
    # toolchain.
    contexts: Mapping[str, str]
    environment: Mapping[str, Any]  # the same and more for a person, as plain data

    def evaluate(
        self, candidates: Sequence[Candidate], seconds: float | None = None
    ) -> Iterator[tuple[int, Evaluated]]:
        """(position, outcome) of each, in any order; gives up the rest after `seconds`."""


class ModelHooks(Protocol):
    """What operators that ask models share."""

    @property
    def spent(self) -> Spent:
        """By all exchanges of the run so far."""

    def begin(self, run: str) -> None:
        """Is told the run's name before anything is asked."""

    def advance(self, generation: int, graph: Graph, outcomes: Mapping[str, Evaluated]) -> None:
        """Is told of each generation before its children are made, in a resumed run again of
        those that are known; Halted where the run cannot go on."""

    def allow(self, seconds: float) -> None:
        """Is told how long answers may be waited for, where the search has a limit of time."""

    def rest(self) -> bool:
        """Waits until models that gave no answer may be asked again, but not beyond the time that
        is left; False where they have been waited for long enough."""

    def use(self, graph: Graph, outcomes: Mapping[str, Evaluated]) -> ModelUse:
        """What was asked so far, and what came of it."""


class Search:
    """One search, to be run once.

    machines: by the name of a backend, the target as that serves it.  models: what its operators ask, None where none asks.  run: the name of a stored run that is
    to go on; `settings` are then its own, but for the limits, which may be wider.  identity: of a
    candidate's source; one that has that of another takes its outcome.
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
    ):
        self.settings = settings
        self.evaluator = evaluator
        self.store = store
        self.policy = policy
        self.operators = operators
        self.models = models
        self.spec = spec_of(settings.spec)
        self.machine = machines[settings.backends[0]]  # for what does not depend on a backend
        self.roofline_us = bound_us(self.spec, self.machine, settings.shapes)
        self.graph = Graph()
        self.outcomes: dict[str, Evaluated] = {}
        self.best: tuple[Candidate, Evaluation] | None = None
        self._roots = first_candidates(settings, self.spec, machines)
        self._views = backend_views(
            settings, self.spec, machines, self._roots, self.graph, named(settings.measures)
        )
        self._twins = Twins(identity)
        self._told = 0
        self._gain_at = 0
        self._baseline: Baseline | None = None
        self._clock = clock
        self._record = self._resumed(run) if run else None
        self._known = dict(self._record.outcomes) if self._record else {}
        self._same = set(self._record.keys("same") if self._record else ())
        self._run = run or ""
        self._requests = Requests(self._record)
        self._before = self._record.seconds if self._record else 0.0
        self._on_event: Callable[[Event], None] = lambda event: None
        self._began = 0.0
        self._fault: KernelError | None = None
        self._unmade: list[GaveUp | Halted] = []  # of the generation that is being asked
        self._spent = Spent()  # before the generation that is in progress

    def run(self, on_event: Callable[[Event], None] = lambda event: None) -> Outcome:
        """Searches until a rule stops it, or the user does (it can then be resumed)."""
        self._on_event = on_event
        self._began = self._clock()
        if not self._run:
            self._run = self.store.start(self.settings, self.evaluator.environment)
        started = (self._run, self.settings, self.roofline_us, self.evaluator.environment)
        on_event(Started(*started, resumed=self._record is not None))
        try:
            if self.models is not None:
                self.models.begin(self._run)
            reason = self._generations()
        except KeyboardInterrupt:
            reason = "it was interrupted"
        except Halted as halted:
            reason = str(halted)
            self._fault = None if halted.spent else halted.error
        self.store.log(self._run, StoredEvent("stopped", "", self._seconds(), reason))
        on_event(Stopped(reason, self._told, self._seconds()))
        return self._outcome(reason)

    def _generations(self) -> str:
        rules = rules_of(self.settings)
        generation = 0
        while True:
            candidates = self._closed(generation)
            self._spent = self._spent_before(generation)
            seconds = 0.0 if candidates else self._seconds()
            reason = first_reason(rules, self._progress(seconds))
            if reason:
                return reason
            if self.models is not None:
                self._allow()
                self.models.advance(generation, self.graph, self.outcomes)
            halted: Halted | None = None
            if not candidates:
                candidates, halted = self._asked(generation)
                for event in self._requests.close(self._unmade, self._seconds()):
                    self.store.log(self._run, event)
                if candidates:
                    self.store.asked(self._run, generation, candidates, self._seconds())
                elif halted is None:
                    now = self._progress(self._seconds(), True)
                    return first_reason((*rules, Exhausted()), now) or ""
            for c in candidates:
                self._add(c)
            self._evaluate(generation, candidates)
            if halted is not None:
                raise halted
            generation += 1

    def _asked(self, generation: int) -> tuple[tuple[Candidate, ...], Halted | None]:
        """The candidates of a generation, and why no model can be asked any longer, where that is
        so. While there are none as models give no answer, they are asked again after a rest."""
        while True:
            self._unmade.clear()
            self._requests.begin(generation)
            self._allow()
            candidates = self._ask(generation)
            halted = next((u for u in self._unmade if isinstance(u, Halted)), None)
            silent = [u.reason for u in self._unmade if isinstance(u, GaveUp) and u.unanswered]
            if candidates or halted or not silent or self._time_is_over():
                return candidates, halted
            if self.models is None or not self.models.rest():
                return (), silenced(silent)
            if self._time_is_over():
                return (), None

    def _ask(self, generation: int) -> tuple[Candidate, ...]:
        """The candidates of a generation, each new to the graph; fewer where there are no more."""
        if generation == 0:
            return self._roots
        seed, missing = f"{self.settings.seed}/{generation}", self._missing()
        several = len(self._views) > 1
        asked: list[Candidate] = []
        stand = [standing(v.backend, self.graph, v.outcomes) for v in self._views.values()]
        whole, now = shares(stand, self.settings.batch), shares(stand, missing)
        for name, share in whole.items():
            own, most = f"{seed}/{name}" if several else seed, min(share, now[name])
            asked += self._ask_for(self._views[name], generation, share, own, most)
        for name in whole if several else ():  # what one has no use for is another's
            left, more = missing - len(asked), f"{seed}/{name}/more"
            asked += self._ask_for(self._views[name], generation, left, more, left)
        return tuple(asked)

    def _ask_for(
        self, view: BackendView, generation: int, count: int, seed: str, most: int
    ) -> list[Candidate]:
        """Up to `most` children of `count` for a backend, what is brought over before the others."""
        asked = self._brought_over(view) if count and most else []
        shapes = in_turn(view.shapes, generation) if view.shapes else (None,)
        each = max(1, count // 2) if view.shapes else count
        for number, shape in enumerate(shapes):
            part, left = min(each, count - len(asked)), most - len(asked)
            if part < 1 or left < 1 or any(isinstance(u, Halted) for u in self._unmade):
                break
            seen = partial(self._state, generation, view, shape)
            own = f"{seed}/{number}" if view.shapes else seed
            asked += self._asking(view, shape).ask(seen, part, own, left)
        return asked

    def _brought_over(self, view: BackendView) -> list[Candidate]:
        """The best, where it is another backend's and was not brought over yet, for this one."""
        if self.best is None or self.best[0].backend == view.backend or PORT not in self.operators:
            return []
        context = self._context(view, None, Proposal(PORT, (self.best[0].key,)))
        child = self.operators[PORT].propose(context, random.Random(0))
        return [child] if isinstance(child, Candidate) and self._add(child) else []

    def _missing(self) -> int:
        """How many children the next generation may have: all that are still to be evaluated, so
        that none is asked for, and perhaps paid, of which nothing can come."""
        batch, most = self.settings.batch, self.settings.evaluations
        return batch if most is None else min(batch, most - self._told)

    def _asking(self, view: BackendView, shape: ShapeView | None) -> Asking:
        context = partial(self._context, view, shape)
        told = self._unmade.append, self._requests.add
        return Asking(self.policy, self.operators, context, self._add, *told)

    def _add(self, candidate: Candidate) -> bool:
        """Adds a candidate to the graph; False where it is there."""
        machine = self._views[candidate.backend].machine
        for shape in self.settings.shapes:
            try:
                nest = nest_digest(candidate, machine, shape.sizes)
            except KernelError:
                continue
            return self.graph.add(candidate, nest)
        return self.graph.add(candidate)

    def _context(self, view: BackendView, shape: ShapeView | None, proposal: Proposal) -> Context:
        """What an operator is given; one that asks no model knows decisions and equations only."""
        known = shape.outcomes if shape else self.outcomes
        others = (v.transferred(self._run) for v in self._views.values() if v is not view)
        context = Context(
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
            self._requests.memory,
        )
        return context if self.operators[proposal.operator].remote else context.unedited()

    def _evaluate(self, generation: int, candidates: Sequence[Candidate]) -> None:
        """Evaluates what the limit still allows, and tells it in order as far as it is known."""
        if self.settings.evaluations is not None:
            candidates = candidates[: self.settings.evaluations - self._told]
        new = [c for c in candidates if c.key not in self._known]
        for number, c in enumerate(candidates, self._told):
            if c in new:
                self._on_event(Asked(number, generation, c))
        alone, twins = self._twins.part(candidates, self._known)
        for first in [key for key in twins if key in self._known]:
            alone += self._shared(first, twins.pop(first))
        waiting = self._tell_known(generation, list(candidates))
        while alone:
            left: list[Candidate] = []  # twins of what failed by chance
            for position, outcome in self.evaluator.evaluate(alone, self._seconds_left()):
                key = alone[position].key
                self._file(key, outcome, self.evaluator.contexts[alone[position].backend])
                left += self._shared(key, twins.pop(key, []))
                waiting = self._tell_known(generation, waiting)
            alone = left

    def _shared(self, first: str, twins: Sequence[Candidate]) -> list[Candidate]:
        """Gives a candidate's outcome to those of the same source; those that cannot have it."""
        outcome = self._known[first]
        if isinstance(outcome, Failure) and outcome.by_chance:
            return list(twins)
        for twin in twins:
            self.store.log(self._run, StoredEvent("same", twin.key, self._seconds(), first))
            context = self.evaluator.contexts[twin.backend] + SAME
            self._file(twin.key, replace(outcome, seconds={}), context)
            self._same.add(twin.key)
        return []

    def _file(self, key: str, outcome: Evaluated, context: str) -> None:
        """Stores an outcome before it is told."""
        self.store.evaluated(self._run, key, context, outcome, self._seconds())
        self._known[key] = outcome

    def _tell_known(self, generation: int, waiting: list[Candidate]) -> list[Candidate]:
        """Tells the first candidates as far as their outcomes are known; the others."""
        while waiting and waiting[0].key in self._known:
            self._tell(generation, waiting[0], self._known[waiting[0].key])
            waiting = waiting[1:]
        return waiting

    def _tell(self, generation: int, candidate: Candidate, outcome: Evaluated) -> None:
        number, seconds, replayed = self._told, self._seconds(), False
        earlier = self._told_before(candidate.key)
        if earlier is None:
            self.store.log(self._run, StoredEvent("told", candidate.key, seconds, ""))
        else:
            seconds, replayed = earlier, True
        self._told += 1
        improved = self._learn(candidate, outcome)
        best = self.best[1] if self.best else None
        told = (number, generation, candidate, outcome, best, seconds)
        self._on_event(Told(*told, replayed=replayed))
        if improved and isinstance(outcome, Evaluation):
            self._gain_at = self._told
            first = self._us(self._roots[0])
            speedup = first / outcome.us if first else None
            self._on_event(Improved(number, candidate, outcome, speedup, replayed))

    def _learn(self, candidate: Candidate, outcome: Evaluated) -> bool:
        """Files an outcome; whether it is the fastest so far."""
        self.outcomes[candidate.key] = outcome
        if isinstance(outcome, Evaluation) and self._baseline is None:
            is_first = candidate.key == self._roots[0].key
            us = outcome.us if is_first else self.roofline_us
            self._baseline = Baseline(us, outcome.time_kind)
        improved = isinstance(outcome, Evaluation) and outcome.faster_than(
            self.best[1] if self.best else None
        )
        at_a_shape = self._views[candidate.backend].learn(candidate, outcome, self._baseline)
        if improved and isinstance(outcome, Evaluation):
            self.best = candidate, outcome
        # The kernels that share the shapes are of the best's backend.
        if at_a_shape and (self.best is None or self.best[0].backend == candidate.backend):
            self._gain_at = self._told
        return improved

    def _state(self, generation: int, view: BackendView, shape: ShapeView | None) -> State:
        """What a policy sees of a backend."""
        remote = [name for name, o in self.operators.items() if o.remote]
        tokens = self._spent.tokens // len(remote) if remote else 0
        return view.state(generation, dict.fromkeys(remote, tokens), shape)

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

    def _closed(self, generation: int) -> tuple[Candidate, ...]:
        """The stored candidates of a generation whose outcomes are all known, else none. The last
        one is open too where a limit, now wider, or a lack of answers had kept it short."""
        if self._record is None or generation >= len(self._record.generations):
            return ()
        stored = self._record.generations[generation]
        is_last = generation == len(self._record.generations) - 1
        if generation and is_last and len(stored) < self._missing():
            return ()
        return stored if all(c.key in self._record.outcomes for c in stored) else ()

    def _spent_before(self, generation: int) -> Spent:
        """What models had taken before a generation was asked. A resumed run has the exchanges of
        all generations at once, and must decide as it did: the log says what was spent then."""
        if self.models is None:
            return Spent()
        events = self._record.events if self._record else ()
        for event in events:
            if event.kind == "spent" and event.key == str(generation):
                return Spent(**json.loads(event.detail))
        spent = self.models.spent
        detail = json.dumps(asdict(spent))
        self.store.log(self._run, StoredEvent("spent", str(generation), self._seconds(), detail))
        return spent

    def _told_before(self, key: str) -> float | None:
        """The run's seconds when this was told in an earlier session; None where it was not."""
        events = self._record.events if self._record else ()
        return next((e.seconds for e in events if e.kind == "told" and e.key == key), None)

    def _progress(self, seconds: float, nothing_new: bool = False) -> Progress:
        return Progress(
            evaluations=self._told,
            seconds=seconds,
            since_gain=self._told - self._gain_at,
            best_us=self.best[1].us if self.best else None,
            roofline_us=self.roofline_us,
            nothing_new=nothing_new,
            first_us=self._us(self._roots[0]),
            tokens=self._spent.tokens,
            cost=self._spent.cost or 0.0,
        )

    def _seconds(self) -> float:
        return self._before + self._clock() - self._began

    def _seconds_left(self) -> float | None:
        if self.settings.seconds is None:
            return None
        return max(0.0, self.settings.seconds - self._seconds())

    def _allow(self) -> None:
        """Tells models how long they may be waited for."""
        left = self._seconds_left()
        if self.models is not None and left is not None:
            self.models.allow(left)

    def _time_is_over(self) -> bool:
        return self._seconds_left() == 0.0

    def _us(self, candidate: Candidate) -> float | None:
        outcome = self.outcomes.get(candidate.key)
        return outcome.us if isinstance(outcome, Evaluation) else None

    def _outcome(self, reason: str) -> Outcome:
        plain = next((c for c in self._roots if c.origin.operator == PLAIN), self._roots[0])
        failures: dict[str, int] = {}
        for outcome in self.outcomes.values():
            if isinstance(outcome, Failure):
                failures[outcome.stage] = failures.get(outcome.stage, 0) + 1
        return Outcome(
            run=self._run,
            settings=self.settings,
            evaluations=self._told,
            failures=failures,
            first=self._roots[0],
            first_us=self._us(self._roots[0]),
            plain_us=self._us(plain),
            best=self.best[0] if self.best else None,
            evaluation=self.best[1] if self.best else None,
            roofline_us=self.roofline_us,
            stopped_because=reason,
            fault=self._fault,
            models=self.models.use(self.graph, self.outcomes) if self.models else None,
            seconds=self._seconds(),
            archive=merged(view.archive for view in self._views.values()),
            graph=self.graph,
            outcomes=self.outcomes,
            bounds_us=bounds_us(self.spec, self.machine, self.settings.workload),
            dispatch=self._dispatch(),
            same_source=len(self._same),
        )

    def _dispatch(self) -> ShapeDispatch | None:
        """The kernels that share the shapes, where there may be several and one fits at all."""
        if self.best is None or not self._views[self.best[0].backend].shapes:
            return None
        return shape_dispatch(self.settings, self.best[0], self.graph, self.outcomes)
