"""Candidates with the same source are evaluated once, in any order of answers and after an
interruption."""

import random
from dataclasses import dataclass, field

import pytest

from search.core.candidate import Candidate
from search.core.evaluation import Evaluation, Failure
from search.core.testing import CHIP, SETTINGS
from search.loop.run import Search
from search.loop.state import Proposal
from search.loop.testing import Pick
from search.loop.twins import Twins
from search.store.store import Store

SOURCES = 5


def identity(candidate):
    return str(int(candidate.key, 16) % SOURCES)


class Anyone:
    """Chooses any candidate as a parent."""

    def ask(self, state, count, rng):
        return [Proposal("pick", (rng.choice(list(state.outcomes)),)) for _ in range(count)]


@dataclass
class Drawn:
    """Draws times from keys, and answers in any order."""

    shuffle: int = 0
    faults: int = 0  # number of accidental failures, which come first
    stop_at: int | None = None  # evaluations after which it is interrupted
    context: str = "drawn"
    asked: list = field(default_factory=list)

    @property
    def environment(self):
        return {"contexts": self.contexts}

    @property
    def contexts(self):
        return {"tongue": self.context}

    def evaluate(self, candidates, seconds=None):
        order = list(enumerate(candidates))
        random.Random(self.shuffle).shuffle(order)
        for position, one in order:
            if len(self.asked) == self.stop_at:
                raise KeyboardInterrupt
            self.asked.append(one)
            if len(self.asked) <= self.faults:
                yield position, Failure("check", "timeout", "it was slow")
                continue
            us = 200 + int(one.key, 16) % 1000
            yield position, Evaluation(us, "modelled", "emulator", seconds={"build": 1.0})


def searched(store, evaluator, run=None, **more):
    return Search(
        SETTINGS,
        evaluator,
        store,
        machines={"tongue": CHIP},
        policy=Anyone(),
        operators={"pick": Pick()},
        identity=identity,
        run=run,
        **more,
    ).run()


def told(outcome):
    return [(key, str(found)) for key, found in outcome.outcomes.items()]


@pytest.fixture
def store(tmp_path):
    store = Store(str(tmp_path / "store.db"))
    yield store
    store.close()


@dataclass
class Foreseeing(Drawn):
    """Records what is begun early, and checks that the next call asks for all of it."""

    begun: list = field(default_factory=list)
    most: int = 0

    def ahead(self, asked):
        self.begun.append(asked)

    def evaluate(self, candidates, seconds=None):
        assert [c for c in candidates if c in self.begun] == self.begun
        self.most = max(self.most, len(self.begun))
        self.begun = []
        yield from super().evaluate(candidates, seconds)


def test_what_is_begun_ahead_is_asked_for_next_and_changes_nothing(store, tmp_path):
    evaluator = Foreseeing(shuffle=1)
    outcome = searched(store, evaluator)
    plain = searched(Store(str(tmp_path / "other.db")), Drawn())
    assert evaluator.most > 1 and not evaluator.begun
    assert told(outcome) == told(plain)


def test_each_source_is_evaluated_once_and_its_outcome_is_that_of_all(store):
    evaluator = Drawn()
    outcome = searched(store, evaluator)
    assert len(evaluator.asked) == len({identity(c) for c in outcome.graph}) == SOURCES
    assert outcome.evaluations == SETTINGS.evaluations
    assert outcome.same_source == SETTINGS.evaluations - SOURCES
    first = {identity(c): outcome.outcomes[c.key] for c in evaluator.asked}
    for candidate in outcome.graph:
        found = outcome.outcomes[candidate.key]
        assert found == first[identity(candidate)]
        assert bool(found.seconds) == (candidate in evaluator.asked)


def test_the_order_of_answers_and_a_stop_change_nothing(store):
    whole = searched(store, Drawn())
    assert told(searched(store, Drawn(shuffle=3))) == told(whole)
    stopped = searched(store, Drawn(stop_at=2))
    assert stopped.evaluations < whole.evaluations
    resumed = searched(store, Drawn(), run=stopped.run)
    assert told(resumed) == told(whole)
    assert resumed.same_source == whole.same_source == store.load(stopped.run).same_source


def test_a_twin_of_what_failed_by_chance_is_evaluated_itself(store):
    evaluator = Drawn(faults=1)
    outcome = searched(store, evaluator)
    failed, *_ = evaluator.asked
    twins = [c for c in outcome.graph if identity(c) == identity(failed) and c != failed]
    assert twins and all(isinstance(outcome.outcomes[c.key], Evaluation) for c in twins)


def test_an_outcome_that_was_taken_is_not_anothers_own(store):
    outcome = searched(store, evaluator := Drawn())
    cached = [c for c in outcome.graph if store.cached(c.key, evaluator.context)]
    assert sorted(c.key for c in cached) == sorted(c.key for c in evaluator.asked)


def test_a_source_that_is_not_known_has_no_twin():
    one, other = (Candidate("def", text, "chip", "tongue") for text in ("a", "b"))
    assert Twins().part([one, other], {}) == ([one, other], {})
    twins = Twins(lambda candidate: "same")
    assert twins.part([one, other], {}) == ([one], {one.key: [other]})
    assert twins.part([other], {one.key, other.key}) == ([], {})
