"""Limits hold for requests in flight, and for requests and tokens in any minute."""

import threading

import pytest

from search.llm.limited import EndpointLimits, Limited
from search.llm.testing import Saying, Time, answer, fault, request
from search.llm.tokens import request_tokens

EACH = request_tokens(request()) + request().max_tokens
GUARD = 1800.0  # seconds; only a hang takes so long


def limited(limits, client=None, time=None):
    time = time or Time()
    return Limited(client or Saying(answer()), limits, time.clock, time.sleep), time


def test_without_limits_nobody_waits():
    client, time = limited(EndpointLimits(at_once=1))
    for _ in range(100):
        client.complete(request())
    assert time.slept == []


def test_requests_of_a_minute_are_counted():
    client, time = limited(EndpointLimits(requests=3))
    sent = []
    for _ in range(7):
        client.complete(request())
        sent.append(time.now)
        time.now += 5.0
    assert sent == [0.0, 5.0, 10.0, 60.0, 65.0, 70.0, 120.0]


def test_tokens_of_a_minute_are_counted():
    client, time = limited(EndpointLimits(tokens=2 * EACH))
    sent = []
    for _ in range(4):
        client.complete(request())
        sent.append(time.now)
    assert sent == [0.0, 0.0, 60.0, 60.0]


def test_a_request_over_the_limit_of_tokens_goes_alone():
    client, time = limited(EndpointLimits(tokens=EACH // 2))
    sent = []
    for _ in range(3):
        client.complete(request())
        sent.append(time.now)
    assert sent == [0.0, 60.0, 120.0]


def test_a_request_that_failed_counts_and_makes_room_for_the_next():
    client, time = limited(EndpointLimits(at_once=1, requests=1), Saying(fault(), answer()))
    with pytest.raises(Exception, match="a fault"):
        client.complete(request())
    client.complete(request())
    assert time.now == 60.0


class Meeting:
    """A client that counts the threads in it, and releases them in pairs."""

    def __init__(self):
        self.door = threading.Barrier(2)
        self.lock = threading.Lock()
        self.inside = self.most = 0

    def complete(self, request):
        with self.lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        self.door.wait(GUARD)
        with self.lock:
            self.inside -= 1
        return answer()


def test_no_more_than_so_many_are_under_way():
    meeting = Meeting()
    client, _ = limited(EndpointLimits(at_once=2), meeting)
    threads = [threading.Thread(target=client.complete, args=(request(),)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(GUARD)
    assert meeting.most == 2


@pytest.mark.parametrize("wrong", [{"at_once": 0}, {"requests": 0}, {"tokens": -1}])
def test_limits_are_positive(wrong):
    with pytest.raises(ValueError, match="at least 1"):
        EndpointLimits(**wrong)
