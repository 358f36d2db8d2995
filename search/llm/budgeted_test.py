"""No exchange exceeds the budget, and each sent request is counted."""

import threading

import pytest

from search.llm.budgeted import Budgeted
from search.llm.exchange import ModelError
from search.llm.ledger import Ledger
from search.llm.testing import Saying, answer, fault, request
from search.llm.tokens import request_tokens


class Greedy:
    """A client whose prompts take the estimated tokens, and whose answers take all that they
    may."""

    def __init__(self):
        self.lock = threading.Lock()
        self.sent = 0

    def complete(self, request):
        with self.lock:
            self.sent += 1
        return answer(tokens_in=request_tokens(request), tokens_out=request.max_tokens)


def test_no_number_of_threads_passes_the_budget():
    client, ledger, refused = Greedy(), Ledger(max_tokens=20_000), []
    budgeted = Budgeted(client, ledger)

    def ask():
        try:
            while True:
                budgeted.complete(request(max_tokens=1000))
        except ModelError as error:
            refused.append(error.kind)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert refused == ["budget"] * 8
    assert 18_000 < ledger.tokens <= 20_000
    assert client.sent >= 18


def test_a_request_over_the_budget_is_not_sent():
    client = Saying(answer())
    with pytest.raises(ModelError, match="what is left of the budget"):
        Budgeted(client, Ledger(max_tokens=10)).complete(request())
    assert client.asked == []


def test_an_answer_that_was_cut_off_is_counted():
    ledger = Ledger()
    with pytest.raises(ModelError, match="a fault of kind cut"):
        Budgeted(Saying(fault("cut", tokens_in=9, tokens_out=3)), ledger).complete(request())
    assert ledger.tokens == 12


def test_what_breaks_off_otherwise_frees_its_reserve():
    class Broken:
        def complete(self, request):
            raise KeyboardInterrupt

    ledger = Ledger(max_tokens=2000)
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            Budgeted(Broken(), ledger).complete(request(max_tokens=1900))
    assert ledger.tokens == 0
