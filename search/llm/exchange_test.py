"""Exchanges are plain data, and their costs add up."""

import pytest

from ir.errors import KernelError
from search.llm.exchange import (
    KINDS,
    Answer,
    Message,
    ModelError,
    Request,
    after,
    reply_json,
    reply_of,
    request_of,
)
from search.llm.testing import answer, fault, request

REQUEST = Request("m", (Message("system", "é\n"), Message("user", "\udc80")), 0.25, 7, None)
ANSWER = Answer("text\n", 3, 4, None, "length", 1 / 3, "estimated")
ERROR = ModelError(
    "budget", "what", where="where", allowed="allowed", hint="hint", tokens_in=1, cost=None
)


def test_a_request_comes_back():
    assert request_of(REQUEST.to_json()) == REQUEST
    assert request_of(REQUEST.to_json()).digest == REQUEST.digest


def test_a_digest_tells_requests_apart():
    changes = ({}, {"model": "n"}, {"seed": 2}, {"seed": None}, {"temperature": 0.5})
    requests = [request(**c) for c in changes] + [request("Make it slower.")]
    requests += [request(max_tokens=99)]
    assert len({r.digest for r in requests}) == len(requests)


def test_a_digest_stays_what_it_is():
    """Stored runs are replayed by the digest."""
    assert request().digest == "2f2f5c85eda0074c"


def test_an_answer_comes_back_to_the_last_bit():
    assert reply_of(reply_json(ANSWER)) == ANSWER


def test_an_error_comes_back():
    found = reply_of(reply_json(ERROR))
    assert isinstance(found, ModelError) and found.table() == ERROR.table()
    assert str(found) == str(ERROR)


@pytest.mark.parametrize("text", ["[]", "{}", '{"answer": {}}', '{"error": {"kind": "new"}}', "1"])
def test_what_is_neither_is_refused(text):
    with pytest.raises((ValueError, KeyError, TypeError)):
        reply_of(text)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Message("robot", "text"),
        lambda: Request("m", ()),
        lambda: request(max_tokens=0),
        lambda: request(temperature=-1.0),
        lambda: request(temperature=float("nan")),
        lambda: Answer("", 0, 0, 0.0, "end", 0.0),
        lambda: Answer("", 0, 0, 0.0, "stop", 0.0, "guessed"),
        lambda: ModelError("new", "what"),
    ],
)
def test_values_are_checked_when_made(make):
    with pytest.raises(ValueError):
        make()


def test_a_model_error_is_an_error_of_this_project():
    assert isinstance(ERROR, KernelError)
    assert "hint: hint" in str(ERROR)


def test_what_may_pass_does_not_last():
    assert not any(transient and lasting for transient, lasting in KINDS.values())
    assert fault("limit").transient and not fault("limit").lasting
    assert fault("key").lasting and not fault("key").transient


def test_failed_attempts_are_paid_with_the_reply():
    failed = [fault(tokens_in=4, tokens_out=1, cost=0.5), fault(), fault(tokens_in=2, cost=0.25)]
    priced = Answer("text", 10, 5, 1.0, "stop", 0.5)
    assert after(priced, failed) == Answer("text", 16, 6, 1.75, "stop", 0.5, "estimated")
    assert after(priced, [fault()]) == priced
    assert after(answer(), failed).cost is None
    error = after(fault("key"), failed)
    assert (error.kind, error.tokens_in, error.tokens_out, error.cost) == ("key", 6, 1, 0.75)
