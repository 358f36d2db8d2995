"""The cache returns stored outcomes of the same context, and evaluates the rest."""

from dataclasses import dataclass, field, replace

import pytest

from search.core.candidate import Candidate
from search.core.evaluation import Evaluation, Failure
from search.core.settings import Settings
from search.evaluator.cache import Cached
from search.store.store import Store

GOOD = Evaluation(1.0, "simulated", "simulator")
CANDIDATES = [Candidate("spec", str(n), "chip", "tongue") for n in range(4)]


@dataclass
class Counting:
    contexts: dict = field(default_factory=lambda: {"tongue": "here"})
    asked: tuple[str, ...] = ()
    begun: tuple[str, ...] = ()

    @property
    def environment(self):
        return {"contexts": self.contexts}

    def ahead(self, asked):
        self.begun += (asked.schedule,)

    def evaluate(self, candidates, seconds=None):
        self.asked += tuple(c.schedule for c in candidates)
        for position, c in reversed(list(enumerate(candidates))):
            yield position, replace(GOOD, us=10.0 + int(c.schedule))


@pytest.fixture
def store(tmp_path):
    store = Store(str(tmp_path / "store.db"))
    yield store
    store.close()


def know(store, outcome, context="here"):
    run = store.start(Settings("k", "", "chip", ("tongue",), {}), {})
    store.asked(run, 0, CANDIDATES[1:2], 0.0)
    store.evaluated(run, CANDIDATES[1].key, context, outcome, 0.0)


@pytest.mark.parametrize(
    "known", [GOOD, Failure("check", "wrong", ""), Failure("build", "refused", "")]
)
def test_what_is_known_is_not_asked_again(store, known):
    know(store, known)
    inner = Counting()
    cached = Cached(inner, store)
    found = dict(cached.evaluate(CANDIDATES))
    assert inner.asked == ("0", "2", "3")
    assert found[1] == known
    assert [found[n].us for n in (0, 2, 3)] == [10.0, 12.0, 13.0]
    assert cached.hits == 1


CHANCE = [("check", "timeout"), ("check", "memory"), ("check", "crash"), ("time", "wrong")]


@pytest.mark.parametrize("stage, kind", CHANCE)
def test_what_may_have_been_chance_is_asked_again(store, stage, kind):
    know(store, Failure(stage, kind, ""))
    assert dict(Cached(Counting(), store).evaluate(CANDIDATES))[1].us == 11.0


def test_measured_times_are_asked_again(store):
    know(store, replace(GOOD, time_kind="measured"))
    assert dict(Cached(Counting(), store).evaluate(CANDIDATES))[1].us == 11.0


def test_another_context_is_another_question(store):
    know(store, GOOD, "elsewhere")
    inner = Counting()
    assert len(dict(Cached(inner, store).evaluate(CANDIDATES))) == 4
    assert len(inner.asked) == 4


def test_what_is_known_is_not_begun_ahead(store):
    know(store, GOOD)
    inner = Counting()
    cached = Cached(inner, store)
    for one in CANDIDATES:
        cached.ahead(one)
    assert inner.begun == ("0", "2", "3")
