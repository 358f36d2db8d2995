"""A flow asks and reports as early as possible, and finds the same again from the stored order."""

import random
from dataclasses import replace

import pytest

from ir.errors import KernelError
from search.core.candidate import Candidate
from search.loop.context import GaveUp, Halted, Memory, Refused
from search.loop.script import LEFT
from search.loop.testing import FLOWING, Clock, Heard, Pick, Simulated, made, result
from search.store.store import Store

WHOLE = FLOWING.evaluations


@pytest.fixture
def store(tmp_path):
    store = Store(str(tmp_path / "store.db"))
    yield store
    store.close()


def test_as_many_requests_are_in_flight_as_allowed_and_no_more_than_are_missing(store):
    found = made(store, local=False, evaluations=10)
    assert found.run().evaluations == 10
    assert found.jobs.most_in_flight == 4 and len(found.model.began) == 8
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


def test_those_who_advise_know_refused_answers_also_when_the_run_goes_on(store):
    wrong = GaveUp("two answers were refused", answer="text", prompt="version")
    found = made(store, local=False, answers=lambda n: wrong if n == 2 else True, evaluations=8)
    outcome = found.run()
    known = (Refused("request 2", "two answers were refused", "text", "version"),)
    assert found.models.refused == known
    again = made(store, local=False, run=outcome.run, evaluations=8)
    again.run()
    assert again.models.refused == known and not again.model.began


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
    # The answer of a request is looked up by its number here; in a store it is looked up by the
    # request.
    again = made(store, seconds=lambda: 0.0, evaluating=uneven(7), answers=answers, script=script)
    assert result(again.run()) == result(first)
    once_more = made(
        store, seconds=uneven(3), answers=answers, script=store.load(again.search.book.run).events
    )
    assert result(once_more.run()) == result(first)


class Stopping(Simulated):
    """Is interrupted after a number of jobs."""

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


def test_an_answer_that_took_effect_just_before_the_end_still_becomes_a_child(store, monkeypatch):
    """The log has the entry, but the child is not stored yet."""
    whole = made(store, local=False, evaluations=8).run()
    asked = store.asked

    def killed(run, number, candidates, seconds):
        if number == 3:
            raise KeyboardInterrupt
        asked(run, number, candidates, seconds)

    with monkeypatch.context() as patched:
        patched.setattr(store, "asked", killed)
        before = made(store, local=False, evaluations=8).run()
    assert before.stopped_because == "it was interrupted"
    resumed = made(store, local=False, evaluations=8, run=before.run)
    assert result(resumed.run()) == result(whole)


def test_an_order_that_can_no_longer_be_followed_is_left(store):
    first = made(store, local=False, evaluations=12).run()
    # The model now refuses where it gave children before.
    other = made(store, answers=lambda number: number > 9, script=store.load(first.run).events)
    outcome = other.run()
    assert outcome.evaluations == WHOLE
    events = store.load(outcome.run).events
    assert [e.kind for e in events].count(LEFT) == 1
    again = made(store, answers=lambda number: number > 9, script=events)
    assert result(again.run()) == result(outcome)


def test_a_run_with_a_wider_limit_goes_on_from_where_it_was(store):
    short = made(store, evaluations=13, seconds=uneven(5)).run()
    wider = made(store, run=short.run, seconds=uneven(6), settings=replace(FLOWING, evaluations=20))
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
    # The fourth was in flight when the third answered; a fifth and a sixth were sent before.
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


def test_an_operator_that_meets_an_illegal_schedule_does_not_end_the_run(store):
    class Faulty(Pick):
        draws = 0

        def propose(self, context, rng):
            self.draws += 1
            if self.draws % 3 == 1:
                raise KernelError("`kernel(t)` ends a launch after an unknown tensor")
            return super().propose(context, rng)

    found = made(store, evaluations=12)
    found.search.operators["pick"] = faulty = Faulty()
    assert found.run().evaluations == 12
    assert faulty.draws > 3
