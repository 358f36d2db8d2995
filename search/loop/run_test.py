"""A run finds the same for any order of answers, and after a kill at any point."""

import json
import os
import random
import signal
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from ir.edits.edits import neighbours
from ir.errors import KernelError
from ir.estimate.estimate import intensity
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule
from search.core.evaluation import Evaluation, Failure
from search.core.events import Asked, Improved, Started, Stopped, Told
from search.core.testing import CHIP, SETTINGS, SIZES, SPEC
from search.loop.run import Search
from search.loop.state import Proposal
from search.loop.testing import Pick
from search.store.store import Store
from search.warm_start.first import FIRST, GIVEN, PLAIN

ROOT = Path(__file__).parents[2]


class Climb:
    """Chooses any elite as a parent."""

    def ask(self, state, count, rng):
        keys = [e.candidate.key for e in state.archive] or list(state.roots)
        return [Proposal("pick", (rng.choice(keys),)) for _ in range(count)]


@dataclass
class Drawn:
    """Draws times from keys; every fifth candidate is wrong."""

    shuffle: int = 0  # seed of the order of answers
    most: int | None = None  # evaluations after which it dies by kill -9
    stop_at: int | None = None  # evaluations after which it is interrupted
    contexts: dict = field(default_factory=lambda: {"tongue": "drawn"})
    made: int = 0
    asked: tuple[str, ...] = ()

    @property
    def environment(self):
        return {"contexts": self.contexts}

    def evaluate(self, candidates, seconds=None):
        order = list(enumerate(candidates))
        random.Random(self.shuffle).shuffle(order)
        for position, c in order:
            if self.made == self.most:
                os.kill(os.getpid(), signal.SIGKILL)
            if self.made == self.stop_at:
                raise KeyboardInterrupt
            self.made += 1
            self.asked += (c.key,)
            yield position, self.outcome(c)

    def outcome(self, c):
        if int(c.key, 16) % 5 == 0 and c.origin.operator == "pick":
            return Failure("check", "wrong", "as it happens")
        nest = lower(SPEC, parse_schedule(c.schedule), CHIP, SIZES)
        figures = intensity(nest, CHIP, SIZES)
        drawn = 100 + int(c.key, 16) % 1000 / 100
        us = {FIRST: 109.0, PLAIN: 200.0}.get(c.origin.operator, drawn)
        return Evaluation(us, "modelled", "emulator", figures=figures)


def search(store, evaluator=None, settings=SETTINGS, **more):
    return Search(
        settings,
        evaluator or Drawn(),
        store,
        machines={"tongue": CHIP},
        policy=Climb(),
        operators={"pick": Pick()},
        **more,
    )


def result(outcome):
    """Everything that must not depend on the order of answers or on a kill."""
    return {
        "told": [(c.key, str(outcome.outcomes.get(c.key))) for c in outcome.graph],
        "edges": [str(e) for e in outcome.graph.edges()],
        "archive": [(e.cell, e.candidate.key, e.fitness) for e in outcome.archive],
        "best": (outcome.best.schedule, outcome.evaluation.us),
        "compared": (outcome.first_us, outcome.plain_us, outcome.roofline_us),
        "counts": (outcome.evaluations, outcome.failures, outcome.stopped_because),
    }


@pytest.fixture
def store(tmp_path):
    store = Store(str(tmp_path / "store.db"))
    yield store
    store.close()


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    return result(search(Store(str(tmp_path_factory.mktemp("s") / "store.db"))).run())


def test_it_finds_something_better_than_where_it_began(store):
    outcome = search(store).run()
    assert outcome.evaluation.us < outcome.first_us
    assert outcome.evaluation.us == min(
        o.us for o in outcome.outcomes.values() if isinstance(o, Evaluation)
    )
    assert outcome.failures["check"] > 0
    assert outcome.evaluations == 40 == len(outcome.outcomes)
    assert outcome.stopped_because == "40 evaluations were asked for and made"


def test_the_first_two_are_the_autoschedule_and_the_plain_one(store):
    outcome = search(store).run()
    first, plain = list(outcome.graph)[:2]
    assert (first.origin.operator, plain.origin.operator) == (FIRST, PLAIN)
    assert outcome.plain_us > outcome.first_us
    assert not outcome.graph.children(plain.key)
    assert plain.key not in {e.candidate.key for e in outcome.archive}


def test_a_given_schedule_comes_third_and_is_not_taken_for_the_plain_one(store):
    edits = neighbours(SPEC, parse_schedule(search(store).run().first.schedule), CHIP, SIZES)
    given = str(edits[0].apply(parse_schedule(search(store).run().first.schedule)))
    outcome = search(store, settings=replace(SETTINGS, schedule=given, evaluations=3)).run()
    origins = [c.origin.operator for c in outcome.graph]
    assert origins == [FIRST, PLAIN, GIVEN]
    assert (outcome.first_us, outcome.plain_us) == (109.0, 200.0)


@pytest.mark.parametrize("shuffle", [1, 2, 3])
def test_the_order_of_answers_does_not_matter(store, shuffle, uninterrupted):
    assert result(search(store, Drawn(shuffle)).run()) == uninterrupted


def test_another_seed_searches_elsewhere(store, uninterrupted):
    other = search(store, settings=replace(SETTINGS, seed=2)).run()
    assert result(other)["told"] != uninterrupted["told"]


@pytest.mark.parametrize("most", [0, 1, 2, 5, 17, 39])
def test_a_run_that_was_killed_goes_on_as_if_it_had_not_been(store, most, uninterrupted):
    path = store.url.removeprefix("sqlite:///")
    killed = subprocess.run(
        [sys.executable, "-m", "search.loop.run_test", path, str(most)],
        cwd=ROOT,
        env=_environment(),
    )
    assert killed.returncode == -signal.SIGKILL
    (run,) = store.runs()
    stored = store.load(run).outcomes
    assert len(stored) == most
    evaluator = Drawn(shuffle=9)
    outcome = search(store, evaluator, store.load(run).settings, run=run).run()
    assert result(outcome) == uninterrupted
    assert evaluator.made == 40 - most, "what was stored must not be evaluated again"
    assert not set(evaluator.asked) & set(stored)
    assert [e.kind for e in store.load(run).events].count("told") == 40


def _environment():
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def test_an_interrupted_run_ends_in_order_and_goes_on(store, uninterrupted):
    events = []
    stopped = search(store, Drawn(stop_at=13)).run(events.append)
    assert stopped.stopped_because == "it was interrupted"
    assert isinstance(events[-1], Stopped)
    assert result(search(store, run=stopped.run).run()) == uninterrupted


def test_a_finished_run_is_replayed_without_evaluating(store):
    before = search(store).run()
    events, evaluator = [], Drawn()
    after = search(store, evaluator, run=before.run).run(events.append)
    assert evaluator.made == 0
    assert result(after) == result(before)
    assert all(e.replayed for e in events if isinstance(e, Told | Improved))


@pytest.mark.parametrize("few", [1, 2, 3, 7, 10, 15])
def test_a_run_may_be_given_more_evaluations_later(store, few, uninterrupted):
    short = search(store, settings=replace(SETTINGS, evaluations=few)).run()
    assert short.evaluations == few
    assert result(search(store, run=short.run).run()) == uninterrupted


def test_a_run_of_another_toolchain_is_not_resumed(store):
    run = search(store).run().run
    with pytest.raises(KernelError, match="another machine file, toolchain or sizes"):
        search(store, Drawn(contexts={"tongue": "newer"}), run=run)


def test_every_event_is_stored_before_it_is_seen(store):
    seen = []

    def look(event):
        run = store.runs()[0]
        record = store.load(run)
        if isinstance(event, Asked):
            assert event.candidate in [c for g in record.generations for c in g]
        if isinstance(event, Told):
            assert record.outcomes[event.candidate.key] == event.outcome
            assert event.candidate.key in record.keys("told")
        seen.append(type(event))

    search(store, settings=replace(SETTINGS, evaluations=12)).run(look)
    assert (seen[0], seen[-1]) == (Started, Stopped)
    assert seen.count(Told) == seen.count(Asked) == 12


def test_candidates_are_told_in_the_order_they_were_asked(store):
    events = []
    search(store, Drawn(shuffle=4)).run(events.append)
    asked = [e.candidate.key for e in events if isinstance(e, Asked)]
    told = [(e.number, e.candidate.key) for e in events if isinstance(e, Told)]
    assert told == list(enumerate(asked))


def test_improvements_get_faster_each_time(store):
    events = []
    outcome = search(store).run(events.append)
    improved = [e for e in events if isinstance(e, Improved)]
    times = [e.evaluation.us for e in improved]
    assert times == sorted(set(times), reverse=True)
    assert improved[0].speedup == 1.0
    assert improved[-1].candidate == outcome.best


def test_it_stops_when_its_time_is_over(store):
    ticks = iter(range(10**6))
    limited = replace(SETTINGS, evaluations=None, seconds=60.0)
    outcome = search(store, settings=limited, clock=lambda: float(next(ticks))).run()
    assert outcome.stopped_because == "the 60 s it was given are over"
    assert 0 < outcome.evaluations < 40


def test_it_stops_without_gain(store):
    outcome = search(store, settings=replace(SETTINGS, evaluations=None, stagnation=30)).run()
    assert outcome.stopped_because.startswith("no gain in the last")


def test_it_stops_at_the_roofline(store):
    outcome = search(store, settings=replace(SETTINGS, roofline_share=0.01)).run()
    assert outcome.stopped_because.endswith("of the roofline is reached")
    assert outcome.evaluations == 2


def test_it_stops_when_nothing_is_new(store):
    class Silent:
        def ask(self, state, count, rng):
            return []

    only = search(store)
    only.policy = Silent()
    assert only.run().stopped_because == "nothing new is left to try"


def test_a_run_whose_first_candidates_fail_still_searches(store):
    class Late(Drawn):
        def outcome(self, c):
            if c.origin.operator in (FIRST, PLAIN):
                return Failure("build", "refused", "not today")
            return super().outcome(c)

    outcome = search(store, Late()).run()
    assert (outcome.first_us, outcome.plain_us) == (None, None)
    assert outcome.evaluation is not None
    assert outcome.failures["build"] == 2


def test_a_run_in_which_all_fails_ends_too(store):
    class Never(Drawn):
        def outcome(self, c):
            return Failure("check", "crash", "it died of SIGSEGV")

    outcome = search(store, Never()).run()
    assert outcome.best is None
    assert outcome.failures == {"check": 40}


def test_times_of_two_kinds_do_not_meet_in_one_run(store):
    class Mixed(Drawn):
        def outcome(self, c):
            kind = "modelled" if c.origin.operator == FIRST else "measured"
            return Evaluation(1.0, kind, "device")

    with pytest.raises(KernelError, match="cannot be compared"):
        search(store, Mixed()).run()


def test_settings_of_a_run_are_in_the_store(store):
    run = search(store).run().run
    assert store.load(run).settings == SETTINGS
    assert json.loads(SETTINGS.to_json())["seed"] == 1


if __name__ == "__main__":
    search(Store(sys.argv[1]), Drawn(most=int(sys.argv[2]))).run()
