"""Requests are repeated after temporary faults; other faults are reported at once."""

import random

import pytest

from search.llm.exchange import KINDS, ModelError
from search.llm.patient import Patience, Patient
from search.llm.testing import Saying, Time, answer, fault, request

PASSING = [kind for kind, (transient, _) in KINDS.items() if transient]


def patient(client, time, **words):
    patience = Patience(**{"attempts": 4, "first": 1.0, "most": 3.0, "longest": 100.0, **words})
    said = []
    return Patient(client, patience, random.Random(1), time.clock, time.sleep, said.append), said


@pytest.mark.parametrize("kind", PASSING)
def test_a_fault_that_passes_is_not_seen(kind):
    time, client = Time(), Saying(fault(kind), answer("At last."))
    asking, said = patient(client, time)
    assert asking.complete(request()).text == "At last."
    assert client.asked == [request(), request()]
    assert len(time.slept) == 1
    assert "attempt 2 in" in said[0]


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in PASSING])
def test_a_fault_that_stays_is_told_at_once(kind):
    time, client = Time(), Saying(fault(kind), answer())
    with pytest.raises(ModelError, match=f"a fault of kind {kind}$"):
        patient(client, time)[0].complete(request())
    assert time.slept == [] and len(client.asked) == 1


def test_waits_grow_up_to_a_limit_and_are_never_the_same():
    time, client = Time(), Saying(fault())
    with pytest.raises(ModelError, match=r"\(6 attempts\)"):
        patient(client, time, attempts=6)[0].complete(request())
    for slept, whole in zip(time.slept, [1.0, 2.0, 3.0, 3.0, 3.0], strict=True):
        assert whole / 2 <= slept <= whole
    assert len(set(time.slept)) == 5


def test_an_endpoint_is_not_asked_before_it_wants_to_be():
    time, client = Time(), Saying(fault("limit", retry_after=50.0), answer())
    patient(client, time)[0].complete(request())
    assert sum(time.slept) == 50.0


def test_too_long_a_wait_is_told_instead():
    time, client = Time(), Saying(fault("limit", retry_after=101.0))
    with pytest.raises(ModelError, match="a fault") as caught:
        patient(client, time)[0].complete(request())
    assert time.slept == [] and "101 s" in caught.value.hint


def test_after_a_limit_others_wait_too():
    time = Time()
    client = Saying(fault("limit", retry_after=50.0), answer())
    asking, _ = patient(client, time, attempts=2)
    started = []

    def sleep(seconds):
        if not started:
            started.append(time.now)
            time.now += 10.0
            asking.complete(request("Another one."))
            started.append(time.now)
        time.slept.append(seconds)
        time.now += seconds

    asking._sleep = sleep
    asking.complete(request())
    assert started[1] == 50.0


def test_what_failed_attempts_took_is_part_of_the_answer():
    time = Time()
    client = Saying(fault("cut", tokens_in=7, tokens_out=2, cost=None), answer())
    found = patient(client, time)[0].complete(request())
    assert (found.tokens_in, found.tokens_out, found.usage) == (17, 7, "estimated")


def test_what_failed_attempts_took_is_part_of_the_error():
    time, client = Time(), Saying(fault("cut", tokens_in=7, tokens_out=2, cost=0.5))
    with pytest.raises(ModelError) as caught:
        patient(client, time, attempts=3)[0].complete(request())
    error = caught.value
    assert (error.tokens_in, error.tokens_out, error.cost) == (21, 6, 1.5)


def test_an_error_says_what_failed_and_not_that_it_is_left_alone_for_it():
    time, client = Time(), Saying(fault("timeout"), fault("gone"))
    with pytest.raises(ModelError, match="a fault of kind timeout$"):
        patient(client, time)[0].complete(request())
    assert len(client.asked) == 2
