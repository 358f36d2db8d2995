"""Nothing is asked where that is of no use, and not for longer than that."""

import pytest

from search.llm.breaker import Breaker, Tolerance
from search.llm.exchange import ModelError
from search.llm.samples import Saying, Time, answer, fault, request


def broken(*replies):
    time, client = Time(), Saying(*replies)
    return Breaker(client, Tolerance(3, 100.0), time.clock), client, time


def kinds(breaker, count, asked=None):
    """What comes of some requests."""
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
