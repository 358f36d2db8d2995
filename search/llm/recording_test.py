"""Each exchange is stored before it is used, and a resumed run gets its stored answers."""

import pytest

from ir.errors import KernelError
from search.llm.exchange import ModelError, reply_of, request_of
from search.llm.ledger import Ledger
from search.llm.recording import Recording
from search.llm.testing import Saying, Time, answer, fault, request
from search.store.forgetful import Forgetful

RUN = "rows-chip-1"


def recording(client, keeper, ledger=None):
    made = Recording(client, keeper, ledger or Ledger(), Time().clock)
    made.begin(RUN)
    return made


def test_exchanges_are_kept_with_their_ranks():
    keeper = Forgetful()
    client = recording(Saying(answer("a"), answer("b"), answer("c")), keeper)
    asked = [request(), request("Another."), request()]
    assert [client.complete(r).text for r in asked] == ["a", "b", "c"]
    stored = keeper.exchanges(RUN)
    assert [(request_of(e.request), e.rank) for e in stored] == [
        (asked[0], 0),
        (asked[1], 0),
        (asked[2], 1),
    ]
    assert [reply_of(e.reply) for e in stored] == [answer("a"), answer("b"), answer("c")]
    assert [e.digest for e in stored] == [r.digest for r in asked]


def test_errors_are_kept_and_raised():
    keeper = Forgetful()
    with pytest.raises(ModelError, match="a fault of kind key"):
        recording(Saying(fault("key")), keeper).complete(request())
    (stored,) = keeper.exchanges(RUN)
    assert reply_of(stored.reply).table() == fault("key").table()


def test_what_was_broken_off_here_is_not_kept():
    keeper = Forgetful()
    with pytest.raises(ModelError):
        recording(Saying(fault("closed")), keeper).complete(request())
    assert keeper.exchanges(RUN) == ()


def test_an_answer_that_cannot_be_kept_is_not_given():
    class Full(Forgetful):
        def exchanged(self, run, exchange):
            raise KernelError("the store is full")

    with pytest.raises(KernelError, match="the store is full"):
        recording(Saying(answer()), Full()).complete(request())


def test_a_run_that_goes_on_has_its_answers_and_their_cost():
    keeper, ledger = Forgetful(), Ledger()
    first = recording(Saying(answer("a"), answer("b")), keeper)
    first.complete(request())
    first.complete(request())
    later = Saying(answer("c"))
    second = recording(later, keeper, ledger)
    assert ledger.tokens == 30
    assert [second.complete(request()).text for _ in range(3)] == ["a", "b", "c"]
    assert later.asked == [request()]
    assert ledger.tokens == 30


def test_a_run_that_goes_on_asks_again_where_it_had_an_error():
    keeper, ledger = Forgetful(), Ledger()
    with pytest.raises(ModelError):
        recording(Saying(fault("cut", tokens_in=8, tokens_out=1)), keeper).complete(request())
    assert recording(Saying(answer("b")), keeper).complete(request()) == answer("b")
    (stored,) = keeper.exchanges(RUN)
    kept = reply_of(stored.reply)
    assert (kept.text, kept.tokens_in, kept.tokens_out) == ("b", 18, 6)
    recording(Saying(answer("c")), keeper, ledger)
    assert ledger.tokens == 24


def test_exchanges_belong_to_a_run():
    with pytest.raises(AssertionError, match="call begin first"):
        Recording(Saying(answer()), Forgetful(), Ledger()).complete(request())
