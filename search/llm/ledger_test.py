"""The ledger counts costs, and reserves them for requests in flight."""

import threading

import pytest

from ir.errors import KernelError
from search.llm.costs import Price
from search.llm.exchange import Answer, ModelError
from search.llm.ledger import LEAST_ANSWER, Bill, Ledger
from search.llm.testing import answer, fault, request
from search.llm.tokens import request_tokens

PRICES = {"m": Price(1.0, 10.0)}
ASKED = request(max_tokens=1000)
ESTIMATE = request_tokens(ASKED) + 1


def spend(ledger, reply, asked=ASKED):
    return ledger.settle(ledger.reserve(asked), reply)


def test_answers_are_counted_with_their_cost():
    ledger = Ledger(PRICES)
    told = spend(ledger, answer(tokens_in=1000, tokens_out=200))
    assert told.cost == 0.003
    spend(ledger, answer(tokens_in=1000, tokens_out=0))
    assert (ledger.tokens, ledger.cost) == (2200, 0.004)
    assert ledger.bills() == (Bill("m", 2000, 200, 4_000_000),)


def test_errors_are_counted_too():
    ledger = Ledger(PRICES)
    told = spend(ledger, fault("cut", tokens_in=1000, tokens_out=100, cost=None))
    assert (told.kind, told.cost) == ("cut", 0.002)
    spend(ledger, fault("limit"))
    assert ledger.bills() == (Bill("m", 1000, 100, 2_000_000, estimated=True),)


def test_a_cost_that_is_not_known_is_not_nothing():
    ledger = Ledger(PRICES)
    spend(ledger, answer())
    assert spend(ledger, answer(), request(model="n")).cost is None
    assert ledger.cost is None
    assert [b.cost for b in ledger.bills()] == [0.00006, None]
    assert spend(ledger, fault("limit"), request(model="o")).cost == 0.0


def test_sums_are_the_same_in_any_order():
    costs = [answer(tokens_in=n, tokens_out=3 * n) for n in (1, 7, 13, 1009, 999_983)]
    forth, back = Ledger({"m": Price(0.1, 0.7)}), Ledger({"m": Price(0.1, 0.7)})
    for reply in costs:
        spend(forth, reply)
    for reply in reversed(costs):
        spend(back, reply)
    assert forth.cost == back.cost
    assert forth.bills() == back.bills()


def test_an_answer_is_cut_down_to_what_is_left():
    ledger = Ledger(max_tokens=ESTIMATE + 700)
    assert ledger.reserve(ASKED).request == request(max_tokens=700)
    assert Ledger(max_tokens=ESTIMATE + 5000).reserve(ASKED).request == ASKED


def test_an_answer_is_cut_down_to_the_money_that_is_left():
    ledger = Ledger(PRICES, max_cost=PRICES["m"].of(ESTIMATE, 700))
    assert ledger.reserve(ASKED).request.max_tokens in (699, 700)


def test_what_would_pass_the_budget_is_refused():
    enough = ESTIMATE + LEAST_ANSWER
    Ledger(max_tokens=enough).reserve(ASKED)
    with pytest.raises(ModelError, match=f"0 of {enough - 1} tokens are spent") as caught:
        Ledger(max_tokens=enough - 1).reserve(ASKED)
    assert caught.value.kind == "budget" and caught.value.lasting
    assert "--max-tokens" in caught.value.where
    with pytest.raises(ModelError, match="0 of 1e-06 is paid"):
        Ledger(PRICES, max_cost=1e-6).reserve(ASKED)


def test_a_short_answer_needs_no_more_room_than_it_asks_for():
    asked = request(max_tokens=10)
    assert Ledger(max_tokens=request_tokens(asked) + 11).reserve(asked).request == asked


def test_nothing_at_all_allows_nothing():
    for ledger in (Ledger(max_tokens=0), Ledger(PRICES, max_cost=0.0)):
        with pytest.raises(ModelError, match="what is left of the budget"):
            ledger.reserve(ASKED)


def test_what_costs_nothing_is_within_any_budget_of_money():
    assert Ledger({"m": Price(0.0, 0.0)}, max_cost=0.0).reserve(ASKED).request == ASKED


def test_a_budget_of_money_needs_prices():
    ledger = Ledger(PRICES, max_cost=1.0)
    ledger.require_prices(["m"])
    with pytest.raises(KernelError, match="what `n` costs is not known") as caught:
        ledger.require_prices(["m", "n"])
    assert "--price" in caught.value.hint
    with pytest.raises(KernelError, match="what `n` costs is not known"):
        ledger.reserve(request(model="n"))
    Ledger(PRICES).require_prices(["n"])


def test_an_estimate_that_was_too_low_is_raised():
    ledger = Ledger()
    spend(ledger, answer(tokens_in=10 * request_tokens(ASKED)))
    assert ledger.reserve(ASKED).estimate == 10 * request_tokens(ASKED) + 1
    assert ledger.reserve(request(model="n")).estimate == request_tokens(ASKED) + 1


def test_one_waits_for_what_others_may_leave():
    ledger = Ledger(max_tokens=ESTIMATE + 1200)
    first, second = ledger.reserve(ASKED), []
    thread = threading.Thread(target=lambda: second.append(ledger.reserve(ASKED)))
    thread.start()
    thread.join(0.05)
    assert second == []
    ledger.settle(first, answer(tokens_in=10, tokens_out=10))
    thread.join(20)
    assert second[0].request.max_tokens == 1000


def test_an_exchange_that_came_to_nothing_frees_its_reserve():
    ledger = Ledger(max_tokens=ESTIMATE + 1000)
    ledger.release(ledger.reserve(ASKED))
    assert ledger.reserve(ASKED).request == ASKED
    assert ledger.tokens == 0


def test_exchanges_of_earlier_are_counted_as_they_were():
    ledger = Ledger()
    ledger.add("m", Answer("text", 10, 5, 0.25, "stop", 0.0, "estimated"))
    ledger.add("m", fault("cut", tokens_in=4, cost=0.5))
    assert ledger.bills() == (Bill("m", 14, 5, 750_000_000, estimated=True),)
    assert ledger.cost == 0.75
