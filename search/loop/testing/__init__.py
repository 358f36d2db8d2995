"""Test fixtures: an operator, jobs on a simulated clock, and a search that asks a model."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from ir.edits.edits import neighbours
from ir.estimate.estimate import intensity
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule
from search.core.candidate import Candidate
from search.core.evaluation import Evaluation, Failure
from search.core.model_use import Meter, ModelUse, Spent
from search.core.testing import CHIP, SETTINGS, SIZES, SPEC
from search.loop.context import Context, GaveUp, Pending
from search.loop.jobs import Done
from search.loop.run import Search
from search.loop.state import Proposal

FLOWING = replace(SETTINGS, requests=4, evaluations=24)


class Pick:
    """An operator that changes one decision at random."""

    name, parents, remote = "pick", 1, False

    def propose(self, context: Context, rng: random.Random) -> Candidate | GaveUp:
        """The first new change that lowers, in random order."""
        schedule = context.parents[0].schedule
        edits = neighbours(context.spec, schedule, context.machine, context.sizes)
        for edit in rng.sample(edits, len(edits)):
            child = context.offer(edit.apply(schedule), "pick", str(edit))
            if isinstance(child, Candidate):
                return child
        return GaveUp("nothing is left")


class Clock:
    """A clock that a test moves: `now` is in seconds."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Simulated:
    """Jobs on a test's clock. Each job runs at once and ends later by as much as its work moved the
    clock.

    workers: concurrent evaluations.
    """

    def __init__(self, clock: Clock, workers: int = 1):
        self.clock = clock
        self._free = [0.0] * workers  # when each worker is free
        self._ending: list[tuple[float, int, Done]] = []
        self._started = 0
        self._in_flight: set[str] = set()
        self.most_in_flight = 0

    def request(self, name: str, work: Callable[[], Any]) -> None:
        """Starts a request, which runs concurrently with all others."""
        self._in_flight.add(name)
        self.most_in_flight = max(self.most_in_flight, len(self._in_flight))
        self._run(name, work, self.clock.now)

    def evaluation(self, name: str, work: Callable[[], Any]) -> None:
        """Starts an evaluation on the worker that is free first."""
        first = heapq.heappop(self._free)
        heapq.heappush(self._free, self._run(name, work, max(first, self.clock.now)))

    def next(self) -> Done:
        """The job that ends first."""
        end, _, done = heapq.heappop(self._ending)
        self.clock.now = max(self.clock.now, end)
        self._in_flight.discard(done.name)
        return done

    def end(self) -> None:
        """Does nothing, because all jobs have run."""

    def _run(self, name: str, work: Callable[[], Any], start: float) -> float:
        now, self.clock.now = self.clock.now, start
        try:
            done = Done(name, work())
        except Exception as error:
            done = Done(name, error=error)
        end, self.clock.now = self.clock.now, now
        self._started += 1
        heapq.heappush(self._ending, (end, self._started, done))
        return end


class Climb:
    """Chooses parents and operators at random."""

    def __init__(self, *names):
        self.names = names

    def ask(self, state, count, rng):
        keys = [e.candidate.key for e in state.archive] or list(state.roots)
        return [Proposal(rng.choice(self.names), (rng.choice(keys),)) for _ in range(count)]


@dataclass
class Drawn:
    """Draws times from keys, with the durations of `seconds`. Every fifth candidate is wrong."""

    clock: Clock
    seconds: object = lambda: 1.0
    contexts: dict = field(default_factory=lambda: {"tongue": "drawn"})
    stop_at: int | None = None
    asked: list = field(default_factory=list)

    @property
    def environment(self):
        return {"contexts": self.contexts}

    def evaluate(self, candidates, seconds=None):
        for position, c in enumerate(candidates):
            self.asked.append(c.key)
            self.clock.now += self.seconds()
            yield position, self.outcome(c)

    def outcome(self, c):
        if int(c.key, 16) % 5 == 0 and c.origin.parents:
            return Failure("check", "wrong", "as it happens")
        nest = lower(SPEC, parse_schedule(c.schedule), CHIP, SIZES)
        us = 100 + int(c.key, 16) % 1000 / 100
        return Evaluation(us, "modelled", "emulator", figures=intensity(nest, CHIP, SIZES))


class Model:
    """A model's operator.

    seconds: the duration of an answer. answers: the result of a request by its number: True a
    child, False none, anything else is raised or returned.
    """

    name, parents, remote = "model", 1, True

    def __init__(self, clock, seconds=lambda: 180.0, answers=lambda number: True):
        self.clock, self.seconds, self.answers = clock, seconds, answers
        self.knew = []  # number of known outcomes at each request
        self.began = []  # start time of each request
        self.memories = []  # `Memory` of each request
        self.given = None  # a set if answers must differ

    def prepare(self, context, rng):
        self.knew.append(len(context.outcomes))
        self.began.append(self.clock.now)
        self.memories.append(context.memory)
        number = len(self.knew)
        return Pending(f"request {number}", lambda: self.made(number, context, rng))

    def made(self, number, context, rng):
        self.clock.now += self.seconds()
        found = self.answers(number)
        if isinstance(found, Exception):
            raise found
        if isinstance(found, GaveUp):
            return replace(found, asked=f"request {number}")
        if not found:
            return GaveUp("two answers were refused", asked=f"request {number}")
        child = Pick().propose(context, rng)
        while self.given is not None and isinstance(child, Candidate) and child.key in self.given:
            child = Pick().propose(context, rng)
        if isinstance(child, GaveUp):
            return child
        if self.given is not None:
            self.given.add(child.key)
        return replace(child, origin=replace(child.origin, operator=self.name))


@dataclass
class Heard:
    """Records what a run reports. Each request takes 100 tokens."""

    clock: Clock | None = None
    most: int = 0  # rests
    run: str = ""
    rests: int = 0
    rest_seconds: float = 0.0
    allowed: tuple[float, ...] = ()
    advise: object = lambda told: None
    closed: bool = False
    refused: tuple = ()  # as of the last report

    def begin(self, run):
        self.run = run

    def advised(self, told, graph, outcomes, refused):
        self.refused = tuple(refused)
        return self.advise(told)

    @contextmanager
    def metered(self):
        since = self.clock.now if self.clock else 0.0
        meter = Meter()
        yield meter
        meter.spent = Spent(100, None, (self.clock.now if self.clock else 0.0) - since)

    def allow(self, seconds):
        self.allowed += (seconds,)

    def rest(self):
        self.rests += 1
        if self.clock:
            self.clock.now += self.rest_seconds
        return self.rests <= self.most

    def use(self, graph, outcomes):
        return ModelUse(Spent(100, None))

    def close(self):
        self.closed = True


@dataclass
class Made:
    """A search on a test's clock, with its parts."""

    search: Search
    clock: Clock
    model: Model
    evaluator: Drawn
    jobs: Simulated
    models: Heard

    def run(self):
        return self.search.run()


def made(store, *, run=None, script=(), policy=None, local=True, workers=2, **changes):
    """changes: `seconds` and `answers` of the model, `evaluating` seconds, `models`, and
    settings."""
    clock = Clock()
    model = Model(
        clock,
        changes.pop("seconds", lambda: 180.0),
        changes.pop("answers", lambda number: True),
    )
    evaluator = Drawn(clock, changes.pop("evaluating", lambda: 1.0))
    jobs = changes.pop("jobs", None) or Simulated(clock, workers)
    models = changes.pop("models", None) or Heard(clock)
    models.clock = clock
    operators = {"model": model} | ({"pick": Pick()} if local else {})
    search = Search(
        changes.pop("settings", None) or replace(FLOWING, **changes),
        evaluator,
        store,
        machines={"tongue": CHIP},
        policy=policy or Climb(*operators),
        operators=operators,
        models=models,
        clock=clock,
        run=run,
        script=script,
        jobs=jobs,
    )
    return Made(search, clock, model, evaluator, jobs, models)


def result(outcome):
    """Everything that the stored order determines."""
    return {
        "told": [(key, str(found)) for key, found in outcome.outcomes.items()],
        "edges": [str(e) for e in outcome.graph.edges()],
        "archive": [(e.cell, e.candidate.key, e.fitness) for e in outcome.archive],
        "best": (outcome.best.schedule, outcome.evaluation.us),
        "counts": (outcome.evaluations, outcome.failures, outcome.stopped_because),
    }
