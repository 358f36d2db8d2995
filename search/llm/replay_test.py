"""A replay gives the stored answers to the same requests, and reports differences."""

from dataclasses import replace

import pytest

from ir.errors import KernelError
from search.llm.exchange import Message, ModelError
from search.llm.ledger import Ledger
from search.llm.recording import Recording
from search.llm.replay import Replay
from search.llm.testing import Saying, answer, fault, request
from search.store.forgetful import Forgetful

RUN = "rows-chip-1"
PROMPT = "Make it faster.\nIt is bound by memory.\nAnswer with an edit."


def replay(requests, replies, ledger=None):
    """A replay of the exchanges that gave `replies`."""
    keeper = Forgetful()
    client = Recording(Saying(*replies), keeper, Ledger())
    client.begin(RUN)
    for each in requests:
        try:
            client.complete(each)
        except ModelError:
            pass
    return Replay(RUN, keeper.exchanges(RUN), ledger or Ledger())


def missing(client, asked):
    with pytest.raises(KernelError) as caught:
        client.complete(asked)
    assert not isinstance(caught.value, ModelError)
    assert caught.value.where == f"replay of `{RUN}`"
    return caught.value.what


def test_answers_are_the_same_in_any_order_of_asking():
    asked = [request(), request("Another."), request()]
    replies = [answer("a"), answer("b", tokens_in=1), answer("c")]
    ledger = Ledger()
    client = replay(asked, replies, ledger)
    assert client.complete(asked[1]) == replies[1]
    assert [client.complete(request()) for _ in range(2)] == [replies[0], replies[2]]
    assert client.left() == ()
    assert ledger.tokens == sum(r.tokens_in + r.tokens_out for r in replies)


def test_errors_are_raised_again():
    ledger = Ledger()
    client = replay([request()], [fault("cut", tokens_in=4, hint="none")], ledger)
    with pytest.raises(ModelError, match="a fault of kind cut") as caught:
        client.complete(request())
    assert caught.value.table() == fault("cut", tokens_in=4, hint="none").table()
    assert ledger.tokens == 4


def test_what_was_not_asked_again_is_known():
    client = replay([request(), request(), request("Another.")], [answer()])
    client.complete(request())
    assert [(e.digest, e.rank) for e in client.left()] == [
        (request().digest, 1),
        (request("Another.").digest, 0),
    ]


def test_a_prompt_that_differs_is_told_with_its_line():
    client = replay([request("Other"), request(PROMPT)], [answer()])
    asked = request(PROMPT.replace("memory", "products"))
    assert missing(client, asked) == (
        f"request {asked.digest} to `m` is not stored; the nearest differs in message 1 (user), "
        "line 2: now `It is bound by products.`, then `It is bound by memory.`"
    )


def test_a_prompt_that_is_longer_is_told():
    said = missing(replay([request(PROMPT)], [answer()]), request(PROMPT + "\nPlease."))
    assert said.endswith("line 4: now `Please.`, then nothing more")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": "n"}, "the nearest has model m, and not n"),
        ({"temperature": 0.5}, "the nearest has temperature 1.0, and not 0.5"),
        ({"max_tokens": 7}, "the nearest has max_tokens 100, and not 7"),
        ({"seed": 2}, "the nearest has seed 1, and not 2"),
    ],
)
def test_a_setting_that_differs_is_told(changes, said):
    assert missing(replay([request()], [answer()]), request(**changes)).endswith(said)


def test_a_message_more_is_told():
    longer = replace(request(), messages=(*request().messages, Message("assistant", "Done.")))
    said = missing(replay([request()], [answer()]), longer)
    assert said.endswith("the nearest has 1 messages, and not 2")


def test_one_request_too_many_is_told():
    client = replay([request()], [answer()])
    client.complete(request())
    assert missing(client, request()).endswith("is made 2 times, and was made 1 times")
    assert missing(client, request("Another.")).endswith("is one more than the 1 that are stored")


def test_long_lines_are_shortened():
    first, second = ("x" * 500 + end for end in "ab")
    said = missing(replay([request(first)], [answer()]), request(second))
    assert len(said) < 400


def test_requests_to_the_same_model_are_nearer():
    client = replay([request(PROMPT, model="n"), request("Make it")], [answer()])
    assert "then `Make it`" in missing(client, request(PROMPT))
