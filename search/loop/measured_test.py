"""A search that measures times: evaluations end in any order, and none waits for another."""

import heapq
import random
from dataclasses import dataclass, field

import pytest

from ir.estimate.estimate import intensity
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule
from search.core.evaluation import Evaluation, Failure
from search.core.testing import CHIP, SETTINGS, SIZES, SPEC
from search.loop.run import Search
from search.loop.state import Proposal
from search.loop.testing import Climb, Clock, Pick, Simulated, result
from search.store.store import Store

WORKERS = 4


@dataclass
class Measured:
    """Draws times from keys on a test's clock; some candidates take much longer than others."""

    clock: Clock
    slow: float = 1e9
    contexts: dict = field(default_factory=lambda: {"tongue": "drawn"})
    fastest_us: dict = field(default_factory=dict)
    environment: dict = field(
        default_factory=lambda: {
            "contexts": {"tongue": "drawn"},
            "backends": {"tongue": {"time_kind": "measured"}},
        }
    )
    began: list = field(default_factory=list)
    ends: list = field(default_factory=list)
    asked: list = field(default_factory=list)

    def fastest(self, backend, us):
        self.fastest_us[backend] = us

    def evaluate(self, candidates, seconds=None):
        for position, c in enumerate(candidates):
            self.asked.append(c.key)
            self.began.append(self.clock.now)
            self.clock.now += random.Random(c.key).choice([1.0, 1.0, 1.0, 20.0])
            self.ends.append(self.clock.now)
            yield position, self.outcome(c)

    def outcome(self, c):
        nest = lower(SPEC, parse_schedule(c.schedule), CHIP, SIZES)
        us = 100 + int(c.key, 16) % 1000 / 100
        if c.origin.parents and us > self.slow * self.fastest_us["tongue"]:
            return Failure("time", "slow", "it takes long", us=us)
        return Evaluation(us, "measured", "device", figures=intensity(nest, CHIP, SIZES))


@pytest.fixture
def store(tmp_path):
    store = Store(str(tmp_path / "store.db"))
    yield store
    store.close()


def made(store, run=None, slow=1e9, policy=None):
    clock = Clock()
    evaluator = Measured(clock, slow)
    search = Search(
        SETTINGS,
        evaluator,
        store,
        machines={"tongue": CHIP},
        policy=policy or Climb("pick"),
        operators={"pick": Pick()},
        run=run,
        clock=clock,
        workers=WORKERS,
        jobs=Simulated(clock, WORKERS),
    )
    return search, evaluator


def test_no_worker_waits_for_the_slowest_of_a_generation(store):
    """All workers are busy at each moment except the first and the last."""
    search, evaluator = made(store)
    outcome = search.run()
    assert outcome.evaluations == SETTINGS.evaluations
    free = [0.0] * WORKERS
    idle = 0.0
    for began, ended in sorted(zip(evaluator.began, evaluator.ends, strict=True)):
        idle += began - heapq.heappop(free)
        heapq.heappush(free, ended)
    opening = sum(evaluator.ends[: len(search.book.roots)])
    assert idle <= WORKERS * opening


def test_what_is_slow_is_no_failure_and_never_a_parent_or_the_best(store):
    parents = []

    class Noting(Climb):
        def ask(self, state, count, rng):
            found = super().ask(state, count, rng)
            parents.extend(key for proposal in found for key in proposal.parents)
            return found

    search, evaluator = made(store, slow=1.01, policy=Noting("pick"))
    outcome = search.run()
    slow = {k for k, o in outcome.outcomes.items() if isinstance(o, Failure)}
    assert slow and outcome.slow == len(slow) and outcome.failures == {}
    assert not slow & set(parents)
    assert outcome.evaluation.us == evaluator.fastest_us["tongue"]
    assert outcome.best.key not in slow
    assert not slow & {elite.candidate.key for elite in outcome.archive}


def test_forecasts_learn_from_what_is_slow(store):
    search, _ = made(store, slow=1.01)
    search.run()
    book = search.book
    view, root = book.views["tongue"], book.roots[0]
    context = book.context(view, None, Proposal("pick", (root.key,)))
    known = {c.key: us for c, us, _ in context._known()}
    assert known == {key: o.us for key, o in book.outcomes.items()}


def test_a_run_that_goes_on_finds_what_it_had_found(store):
    search, _ = made(store, slow=1.01)
    first = search.run()
    again, evaluator = made(store, run=first.run, slow=1.01)
    assert result(again.run()) == result(first)
    assert not evaluator.asked
