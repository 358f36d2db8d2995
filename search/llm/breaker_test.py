"""No request is made while it is useless, and not longer."""

import random

import pytest

from search.llm.breaker import Breaker, BreakerLimits
from search.llm.exchange import ModelError
from search.llm.models import OUTAGE
from search.llm.patient import Patience, Patient
from search.llm.testing import Saying, Time, answer, fault, request


def broken(*replies):
    time, client = Time(), Saying(*replies)
    return Breaker(client, BreakerLimits(3, 100.0), time.clock), client, time


def kinds(breaker, count, asked=None):
    """The results of some requests."""
    found = []
    for _ in range(count):
        try:
            found.append(breaker.complete(asked or request()).text)
        except ModelError as error:
            found.append(error.kind)
    return found


@pytest.mark.parametrize("kind", ["key", "quota", "protocol"])
def test_what_refuses_for_good_is_asked_once(kind):
    breaker, client, _ = broken(fault(kind, tokens_in=3))
    assert kinds(breaker, 3) == [kind] * 3
    assert kinds(breaker, 1, request(model="n")) == [kind]
    assert len(client.asked) == 1
    with pytest.raises(ModelError) as caught:
        breaker.complete(request())
    assert caught.value.what == fault(kind).what
    assert caught.value.tokens_in == 0


def test_a_model_that_there_is_not_is_asked_once_and_others_go_on():
    breaker, client, _ = broken(fault("model"), answer("Done."))
    assert kinds(breaker, 3) == ["model"] * 3
    assert kinds(breaker, 2, request(model="n")) == ["Done."] * 2
    assert len(client.asked) == 3


@pytest.mark.parametrize("kind", ["request", "budget", "closed"])
def test_what_is_wrong_with_one_request_is_not_held_against_others(kind):
    breaker, client, _ = broken(fault(kind))
    assert kinds(breaker, 9) == [kind] * 9
    assert len(client.asked) == 9


def test_an_endpoint_that_fails_again_and_again_is_left_alone_for_a_while():
    breaker, client, time = broken(*[fault("server")] * 4, answer("Done."))
    assert kinds(breaker, 5) == ["server"] * 3 + ["gone"] * 2
    time.now += 99.0
    assert kinds(breaker, 1) == ["gone"]
    time.now += 1.0
    assert kinds(breaker, 2) == ["server", "gone"]
    time.now += 100.0
    assert kinds(breaker, 3) == ["Done."] * 3
    assert len(client.asked) == 7


def test_after_a_rest_one_is_let_through_and_no_more():
    breaker, _, time = broken(*[fault("server")] * 3, answer("Done."))
    kinds(breaker, 3)
    time.now += 100.0
    inside = []

    class Asking:
        def complete(self, request):
            inside.append(kinds(breaker, 2))
            return answer("Done.")

    breaker._client = Asking()
    assert kinds(breaker, 1) == ["Done."]
    assert inside == [["gone", "gone"]]


def test_failures_with_answers_between_them_are_borne():
    replies = [fault("server"), fault("server"), answer("Done.")] * 3
    breaker, client, _ = broken(*replies)
    assert kinds(breaker, 9) == ["server", "server", "Done."] * 3
    assert len(client.asked) == 9


def outage(tolerance, *replies, rng=None):
    time, client = Time(), Saying(*replies)
    return Breaker(client, tolerance, time.clock, rng), client, time


def test_rests_grow_until_an_answer_comes():
    tolerance = BreakerLimits(in_a_row=1, rest=50.0, first=10.0)
    breaker, client, time = outage(tolerance, *[fault("server")] * 5, answer("Done."), fault())
    rests = []
    for _ in range(5):
        assert kinds(breaker, 2) == ["server", "gone"]
        rests.append(breaker.left)
        time.now += breaker.left
    assert rests == [10.0, 20.0, 40.0, 50.0, 50.0]
    assert kinds(breaker, 1) == ["Done."] and breaker.left == 0.0
    kinds(breaker, 1)
    assert breaker.left == 10.0 and len(client.asked) == 7


def test_rests_are_shortened_by_a_seeded_chance():
    found = []
    for _ in range(2):
        tolerance = BreakerLimits(in_a_row=1, rest=100.0)
        breaker, _, time = outage(tolerance, fault("limit"), rng=random.Random(3))
        for _ in range(4):
            kinds(breaker, 1)
            found.append(breaker.left)
            time.now += breaker.left
    assert found[:4] == found[4:] and len(set(found)) == 4
    assert all(75.0 <= rest <= 100.0 for rest in found)


def test_a_server_that_is_started_again_is_waited_for():
    breaker, client, time = outage(BreakerLimits(3, 100.0, span=10.0), fault("connection"))
    assert kinds(breaker, 5) == ["connection"] * 5
    time.now += 10.0
    assert kinds(breaker, 2) == ["connection", "gone"]
    assert len(client.asked) == 6


def test_an_endpoint_that_asks_for_a_long_wait_is_left_alone_for_it():
    replies = fault("limit", retry_after=500.0), answer("Done.")
    breaker, client, time = outage(BreakerLimits(3, 100.0), *replies)
    assert kinds(breaker, 2) == ["limit", "gone"]
    time.now += 499.0
    assert kinds(breaker, 1) == ["gone"] and breaker.left == 1.0
    time.now += 1.0
    assert kinds(breaker, 1) == ["Done."] and len(client.asked) == 2


def test_what_is_not_sent_says_why():
    breaker, _, _ = broken(fault("timeout"))
    kinds(breaker, 3)
    with pytest.raises(
        ModelError, match="100 s after 3 failures in a row; the last: a fault of kind t"
    ):
        breaker.complete(request())


def test_through_minutes_of_limits_others_go_on_and_the_first_answer_is_not_missed():
    time, asked, answered = Time(), [], []

    class Endpoint:
        def complete(self, request):
            asked.append(time.now)
            if time.now < 300.0:
                raise fault("limit")
            return answer()

    breaker = Breaker(Endpoint(), OUTAGE, time.clock, random.Random(1))
    asking = Patient(breaker, Patience(), random.Random(1), time.clock, time.sleep)
    while not answered:
        try:
            answered.append(asking.complete(request()))
        except ModelError as error:
            assert error.kind in ("limit", "gone")
        time.now += 5.0  # meanwhile other operators' candidates are evaluated
    assert len([at for at in asked if at < 300.0]) < 20
    assert sum(time.slept) < 60.0 and time.now < 600.0
