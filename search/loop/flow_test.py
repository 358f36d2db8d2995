"""A search that asks models asks as it can, tells at once, and finds the same by the stored order."""

import random
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pytest

from ir.errors import KernelError
from ir.estimate.estimate import intensity
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule
from search.core.candidate import Candidate
from search.core.evaluation import Evaluation, Failure
from search.core.model_use import Meter, ModelUse, Spent
from search.core.testing import CHIP, SETTINGS, SIZES, SPEC
from search.loop.context import GaveUp, Halted, Memory, Pending, Refused
from search.loop.run import Search
from search.loop.script import LEFT
from search.loop.state import Proposal
from search.loop.testing import Clock, Pick, Simulated
from search.store.store import Store

SETTINGS = replace(SETTINGS, requests=4, evaluations=24)
WHOLE = SETTINGS.evaluations


class Climb:
    """Any elite may be a parent; the operators are asked in turn, by chance."""

    def __init__(self, *names):
        self.names = names

    def ask(self, state, count, rng):
        keys = [e.candidate.key for e in state.archive] or list(state.roots)
        return [Proposal(rng.choice(self.names), (rng.choice(keys),)) for _ in range(count)]


@dataclass
class Drawn:
    """Draws times from keys, and takes as long as `seconds` says; every fifth candidate is wrong."""

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
    """A model's operator. `seconds` says how long an answer takes, `answers` what becomes of a request
    by its number: True a child, False none, else it is raised or given."""

    name, parents, remote = "model", 1, True

    def __init__(self, clock, seconds=lambda: 180.0, answers=lambda number: True):
        self.clock, self.seconds, self.answers = clock, seconds, answers
        self.knew = []  # how many outcomes were known to each request
        self.began = []  # when each was sent
        self.memories = []  # what each was told of the others
        self.given = None  # a set: no two answers are the same

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
    """Notes what a run tells of itself; each request takes 100 tokens."""

    clock: Clock | None = None
    most: int = 0  # rests
    run: str = ""
    rests: int = 0
    rest_seconds: float = 0.0
    allowed: tuple[float, ...] = ()
    advise: object = lambda told: None
    closed: bool = False

    def begin(self, run):
        self.run = run

    def advised(self, told, graph, outcomes):
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
    """A search on a test's clock, with what it consists of."""

    search: Search
    clock: Clock
    model: Model
    evaluator: Drawn
    jobs: Simulated
    models: Heard

    def run(self):
        return self.search.run()


def made(store, *, run=None, script=(), policy=None, local=True, workers=2, **changes):
    """changes: `seconds` and `answers` of the model, `evaluating` seconds, `models`, and settings."""
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
        changes.pop("settings", None) or replace(SETTINGS, **changes),
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
    """All that the stored order decides."""
    return {
        "told": [(key, str(found)) for key, found in outcome.outcomes.items()],
        "edges": [str(e) for e in outcome.graph.edges()],
        "archive": [(e.cell, e.candidate.key, e.fitness) for e in outcome.archive],
        "best": (outcome.best.schedule, outcome.evaluation.us),
        "counts": (outcome.evaluations, outcome.failures, outcome.stopped_because),
    }


@pytest.fixture
def store(tmp_path):
    store = Store(str(tmp_path / "store.db"))
    yield store
    store.close()


def test_as_many_requests_are_in_flight_as_allowed_and_no_more_than_are_missing(store):
    found = made(store, local=False, evaluations=13)
    assert found.run().evaluations == 13
    assert found.jobs.most_in_flight == 4 and len(found.model.began) == 11
    few = made(store, local=False, evaluations=5)
    assert few.run().evaluations == 5 and len(few.model.began) == 3


def test_a_child_is_evaluated_as_it_comes_and_the_next_prompt_knows_it(store):
    seconds = iter([100.0, 200.0, 300.0, 400.0] + [1000.0] * 99)
    found = made(store, local=False, seconds=lambda: next(seconds), evaluations=8)
    found.run()
    assert found.model.knew[:6] == [2, 2, 2, 2, 2, 3]
    # The first answer comes at 100 s after the roots: its slot is used at once, before its outcome
    # is known; the second slot is used when that is known.
    assert found.model.began[4] == pytest.approx(101.0) and found.model.began[5] < 300.0


def test_other_operators_search_while_a_model_thinks(store):
    found = made(store, evaluations=24)
    outcome = found.run()
    by = [c.origin.operator for c in outcome.graph]
    assert by.count("pick") > 4 and by.count("model") > 4
    assert found.jobs.most_in_flight == 4
    assert found.clock.now < 180.0 * by.count("model") / 2


def test_what_the_model_does_not_answer_is_asked_for_again(store):
    found = made(store, local=False, answers=lambda number: number % 3 != 0, evaluations=14)
    assert found.run().evaluations == 14 and len(found.model.began) >= 17


def test_a_request_knows_those_in_flight_and_those_that_came_to_nothing(store):
    found = made(store, local=False, answers=lambda n: n != 2, seconds=lambda: 60.0, evaluations=8)
    found.run()
    first, second, third = found.model.memories[:3]
    assert first == Memory(1) and second == Memory(2, ("request 1",))
    assert third.requested == ("request 1", "request 2")
    last = found.model.memories[-1]
    assert last.refused == (Refused("request 2", "two answers were refused"),)
    numbers = [memory.number for memory in found.model.memories]
    assert len(set(numbers)) == len(numbers), "no two prompts are the same"


def uneven(seed):
    rng = random.Random(seed)
    return lambda: rng.choice([1.0, 30.0, 500.0])


@pytest.mark.parametrize("seed", range(3))
def test_a_run_is_replayed_by_its_stored_order_whatever_ends_first(store, seed):
    def answers(number):
        return (True, True, False, GaveUp("no connection", unanswered=True))[number * 7 % 4]

    first = made(store, seconds=uneven(seed), evaluating=uneven(seed + 9), answers=answers).run()
    assert first.evaluations == WHOLE
    script = store.load(first.run).events
    # A request's answer is known by its number here, as a stored one is by the request.
    again = made(store, seconds=lambda: 0.0, evaluating=uneven(7), answers=answers, script=script)
    assert result(again.run()) == result(first)
    once_more = made(
        store, seconds=uneven(3), answers=answers, script=store.load(again.search.book.run).events
    )
    assert result(once_more.run()) == result(first)


class Stopping(Simulated):
    """Is interrupted when so many jobs have ended."""

    def __init__(self, clock, most):
        super().__init__(clock, 2)
        self.most = most

    def next(self):
        self.most -= 1
        if self.most < 0:
            raise KeyboardInterrupt
        return super().next()


@pytest.mark.parametrize("most", [0, 1, 8, 25])
def test_a_run_that_was_stopped_goes_on_in_its_order_and_is_replayed_whole(store, most):
    clock = Clock()
    stopped = made(store, seconds=uneven(1), jobs=Stopping(clock, most))
    stopped.jobs.clock = stopped.clock
    before = stopped.run()
    assert before.stopped_because == "it was interrupted" and stopped.models.closed
    resumed = made(store, seconds=uneven(2), run=before.run)
    after = resumed.run()
    assert after.evaluations == WHOLE
    assert list(after.outcomes)[: before.evaluations] == list(before.outcomes)
    assert not set(before.outcomes) & set(resumed.evaluator.asked), (
        "what was stored must not be evaluated again"
    )
    replayed = made(store, seconds=lambda: 0.0, script=store.load(before.run).events)
    assert result(replayed.run()) == result(after)


def test_an_order_that_can_no_longer_be_followed_is_left(store):
    first = made(store, local=False, evaluations=12).run()
    # The model now gives nothing where it gave children.
    other = made(store, answers=lambda number: number > 9, script=store.load(first.run).events)
    outcome = other.run()
    assert outcome.evaluations == WHOLE
    events = store.load(outcome.run).events
    assert [e.kind for e in events].count(LEFT) == 1
    again = made(store, answers=lambda number: number > 9, script=events)
    assert result(again.run()) == result(outcome)


def test_a_run_with_a_wider_limit_goes_on_from_where_it_was(store):
    short = made(store, evaluations=13, seconds=uneven(5)).run()
    wider = made(
        store, run=short.run, seconds=uneven(6), settings=replace(SETTINGS, evaluations=20)
    )
    after = wider.run()
    assert after.evaluations == 20
    assert list(after.outcomes)[:13] == list(short.outcomes)


@pytest.mark.parametrize("spent", [True, False])
def test_a_run_whose_models_are_of_no_more_use_ends_in_order(store, spent):
    halted = Halted(KernelError("the key is not known", hint="give another"), spent)
    found = made(store, local=False, answers=lambda number: True if number < 10 else halted)
    outcome = found.run()
    assert outcome.stopped_because == "the key is not known"
    assert (outcome.fault is None) == spent
    assert outcome.evaluations == 11, "the two first and all nine that were answered"
    assert store.load(outcome.run).keys("stopped") == {""}


def test_tokens_stop_a_run_when_what_they_paid_for_is_evaluated(store):
    found = made(store, local=False, max_tokens=300)
    outcome = found.run()
    # The fourth was in flight when the third came, and a fifth and a sixth were sent before.
    assert outcome.stopped_because.startswith(f"{100 * len(found.model.began)} tokens")
    assert outcome.evaluations == 2 + len(found.model.began) <= 2 + 3 + 3


def test_a_search_whose_only_model_is_silent_rests_and_ends_with_the_reason(store):
    silent = GaveUp("the connection failed", unanswered=True)
    found = made(store, local=False, answers=lambda n: silent, models=Heard(most=4))
    outcome = found.run()
    assert outcome.stopped_because.startswith(
        "no model answers, and no other operator has anything"
    )
    assert "the connection failed" in outcome.stopped_because and "--resume" in str(outcome.fault)
    assert found.models.rests == 5 and outcome.evaluations == 2
    assert outcome.best and store.load(outcome.run).keys("stopped") == {""}
    replayed = made(
        store,
        local=False,
        answers=lambda n: silent,
        models=Heard(most=4),
        script=store.load(outcome.run).events,
    )
    assert result(replayed.run()) == result(outcome)
    assert len(replayed.model.began) == len(found.model.began)


def test_a_search_goes_on_when_its_model_answers_again(store):
    silent = GaveUp("the connection failed", unanswered=True)
    found = made(
        store, local=False, answers=lambda n: True if n > 60 else silent, models=Heard(most=4)
    )
    outcome = found.run()
    assert outcome.stopped_because.startswith(f"{WHOLE} evaluations") and outcome.fault is None
    assert 0 < found.models.rests <= 4
    again = made(store, local=False, models=Heard(most=4), run=outcome.run).run()
    assert list(again.outcomes) == list(outcome.outcomes)


def test_a_silent_model_does_not_keep_other_operators_from_searching(store):
    silent = GaveUp("the connection failed", unanswered=True)
    found = made(store, answers=lambda n: silent, seconds=lambda: 0.1)
    outcome = found.run()
    assert outcome.stopped_because.startswith(f"{WHOLE} evaluations") and found.models.rests == 0
    assert found.model.began


def test_a_silent_model_is_not_waited_for_beyond_the_time_of_the_search(store):
    silent = GaveUp("the connection failed", unanswered=True)
    models = Heard(most=99, rest_seconds=30.0)
    found = made(store, local=False, answers=lambda n: silent, seconds=lambda: 0.0, models=models)
    found.search.book.settings = replace(found.search.book.settings, seconds=100.0)
    outcome = found.run()
    assert outcome.stopped_because == "the 100 s it was given are over" and outcome.fault is None
    assert min(models.allowed) > 0.0


def test_advice_is_asked_for_beside_children_and_takes_effect_in_the_order_that_is_stored(store):
    def advising(took):
        due = [6, 15]

        def advise(told):
            if due and told >= due[0]:
                number = due.pop(0)
                return lambda: lambda: took.append(number)
            return None

        return advise

    took = []
    first = made(store, models=Heard(advise=advising(took)), seconds=uneven(4)).run()
    assert took == [6, 15] and first.evaluations == WHOLE
    took.clear()
    events = store.load(first.run).events
    assert [e.key for e in events if e.key.startswith("advice")] == ["advice 1", "advice 2"]
    again = made(store, models=Heard(advise=advising(took)), script=events)
    assert result(again.run()) == result(first) and took == [6, 15]


def test_what_was_in_the_store_is_not_asked_again_by_a_run_that_goes_on(store):
    whole = made(store, seconds=uneven(1))
    outcome = whole.run()
    again = made(store, run=outcome.run)
    assert result(again.run()) == result(outcome)
    assert not again.model.began and not again.evaluator.asked


def test_an_error_of_a_request_ends_the_run(store):
    with pytest.raises(KernelError, match="is not stored"):
        made(store, answers=lambda n: KernelError("request 1 is not stored")).run()


def test_children_of_a_model_are_candidates_like_any_other(store):
    outcome = made(store, local=False, evaluations=10).run()
    record = store.load(outcome.run)
    assert [len(g) for g in record.generations if g] == [2] + [1] * 8
    assert all(isinstance(c, Candidate) for g in record.generations for c in g)
