"""All parts together, over loopback: limits, patience, a budget, a store, and a replay."""

import random
import threading
import time

import pytest

from ir.errors import KernelError
from search.core.settings import Settings
from search.llm.breaker import BreakerLimits
from search.llm.costs import Price
from search.llm.endpoint import Endpoint
from search.llm.ensemble import ensemble
from search.llm.exchange import ModelError
from search.llm.ledger import Ledger
from search.llm.limited import EndpointLimits
from search.llm.models import asked, replayed
from search.llm.patient import Patience
from search.llm.testing import request
from search.store.store import Store
from testing.model_server.scripted import Scripted
from testing.model_server.server import ModelServer

KEY = "sk-0123456789-abcdef"
SETTINGS = Settings("rows", "def rows", "chip", ("tongue",), {"M": 8})
SOON = Patience(attempts=3, first=0.01, most=0.02)
GUARD = 1800.0  # seconds; only a hang takes so long
PRICES = {"m": Price(1.0, 2.0)}


@pytest.fixture
def store(tmp_path):
    store = Store(str(tmp_path / "store.db"))
    yield store
    store.close()


@pytest.fixture
def made(monkeypatch):
    """Makes models for a server in a run, and closes them at the end."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    closing = []

    def make(server, store, ledger=None, run=None, **words):
        endpoint = Endpoint(server.base_url, words.pop("key", KEY))
        words = {"patience": SOON, **words}
        ledger = ledger or Ledger(PRICES)
        models = asked(endpoint, ensemble(["m"]), ledger, store, random.Random(0), **words)
        closing.append(models)
        models.begin(run or store.start(SETTINGS, {}))
        return models

    yield make
    for models in closing:
        models.close()


def talk(models, requests):
    """The result of each request, as text."""
    found = []
    for each in requests:
        try:
            found.append(repr(models.complete(each)))
        except ModelError as error:
            found.append(repr(error.table()))
    return found


REQUESTS = [request(f"Request {n}.", seed=n) for n in range(6)]
ORDER = [
    "good_edit",
    "fault",
    "cut",
    "good_edit",
    "refusal",
    "too_large",
    "fault",
    "fault",
    "fault",
    "uncounted",
]


def test_a_conversation_with_all_faults_is_replayed_exactly(store, made):
    with ModelServer(ORDER) as server:
        live = made(server, store)
        said = talk(live, REQUESTS)
        assert len(server.seen) == len(ORDER)
    assert "REPLACE" in said[0] and "REPLACE" in said[1] and "refusal" in said[2]
    assert "8192 tokens" in said[3] and "(3 attempts)" in said[4] and "Nobody" in said[5]
    first, second = (store.start(SETTINGS, {}) for _ in range(2))
    run = store.runs()[-1]
    for name, of in ((first, run), (second, first)):
        again = replayed(of, store, live.ensemble, Ledger(PRICES), store)
        again.begin(name)
        assert talk(again, REQUESTS) == said
        assert again.ledger.bills() == live.ledger.bills()
        again.close()
    kept = [
        [(e.digest, e.rank, e.request, e.reply) for e in store.exchanges(r)]
        for r in (run, first, second)
    ]
    assert kept[0] == kept[1] == kept[2]


def test_a_run_that_goes_on_asks_only_what_it_does_not_have(store, made):
    with ModelServer(otherwise="good_edit") as server:
        first = made(server, store)
        said = talk(first, REQUESTS[:4])
        run = store.runs()[0]
        second = made(server, store, run=run)
        assert second.ledger.bills() == first.ledger.bills()
        assert talk(second, REQUESTS)[:4] == said
        assert [s.prompt for s in server.seen] == [r.prompt.partition("\n")[2] for r in REQUESTS]
        assert second.ledger.tokens == 6 * first.ledger.tokens // 4


def test_the_budget_stops_what_would_pass_it(store, made):
    with ModelServer(otherwise=Scripted("a", "text", usage=(40, 60))) as server:
        models = made(server, store, Ledger(max_tokens=500))
        said = talk(models, REQUESTS)
        assert 0 < len(server.seen) < len(REQUESTS)
    assert models.ledger.tokens == 100 * len(server.seen) <= 500
    assert all("what is left of the budget" in s for s in said[len(server.seen) :])


def test_a_budget_of_money_wants_prices_before_anything_is_asked(store, made):
    with ModelServer(otherwise="good_edit") as server:
        with pytest.raises(KernelError, match="what `m` costs is not known"):
            made(server, store, Ledger(max_cost=1.0))
        assert server.seen == ()


def test_attempts_again_are_told(store, made):
    told = []
    with ModelServer(["fault", "good_edit"]) as server:
        made(server, store, say=told.append).complete(request())
    (line,) = told
    assert "The server had an error." in line and "attempt 2" in line


def test_no_more_than_so_many_are_asked_at_once(store, made):
    with ModelServer(otherwise=Scripted("a", "text", delay=0.05), gather=3) as server:
        models = made(server, store, limits=EndpointLimits(at_once=3))
        threads = [threading.Thread(target=models.complete, args=(r,)) for r in REQUESTS * 2]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(GUARD)
        assert server.most_at_once == 3
    assert len(store.exchanges(store.runs()[0])) == 12


def test_the_key_is_nowhere_but_in_the_request(store, made, caplog, capsys, tmp_path):
    """Not in the store, a log, an error or on the screen, even if the endpoint repeats it."""
    told = []
    repeats = [
        Scripted("a", f"Your key is {KEY}."),
        Scripted("b", status=500, error={"message": KEY}),
        Scripted("c", refusal=f"Not with {KEY}."),
        Scripted("d", status=400, error={"message": KEY, "code": KEY, "type": KEY}),
    ]
    with caplog.at_level(0), ModelServer([*repeats]) as server:
        said = talk(made(server, store, say=told.append), REQUESTS[:3])
        assert server.seen[0].authorization == f"Bearer {KEY}"
    with ModelServer(key="another") as server:
        models = made(server, store)
        said += talk(models, REQUESTS[3:4])
        assert len(server.seen) == 1
    assert "does not take the key in OPENAI_API_KEY" in said[-1]
    seen = [*said, *told, caplog.text, *capsys.readouterr(), repr(models)]
    assert not any(KEY in text for text in seen)
    files = [f for f in tmp_path.rglob("*") if f.is_file()]
    assert files and not any(KEY.encode() in f.read_bytes() for f in files)


def test_a_wrong_key_is_tried_once(store, made):
    with ModelServer(key="another") as server:
        said = talk(made(server, store), REQUESTS)
        assert len(server.seen) == 1
    assert len(set(said)) == 1 and "OPENAI_API_KEY" in said[0]


def test_closing_ends_waits_at_once(store, made):
    with ModelServer(otherwise="limit") as server:
        models, caught = made(server, store, patience=Patience()), []

        def ask():
            try:
                models.complete(request())
            except ModelError as error:
                caught.append(error.kind)

        thread = threading.Thread(target=ask)
        thread.start()
        while not server.seen:
            time.sleep(0.01)
        models.close()
        thread.join(GUARD)
        assert caught == ["closed"]
    assert store.exchanges(store.runs()[0]) == ()


def test_an_outage_is_waited_for_and_takes_nothing(store, made):
    told = []
    tolerance = BreakerLimits(in_a_row=2, rest=0.01)
    outage = ["empty", "garbage", "dead", "error_in_200"]
    with ModelServer([*outage, "good_edit"]) as server:
        models = made(
            server,
            store,
            Ledger(max_tokens=5000),
            tolerance=tolerance,
            patience=Patience(attempts=1),
            say=told.append,
        )
        said = []
        while len(server.seen) < 5:
            said += talk(models, [request(seed=len(said))])
            models.wait()
    assert "REPLACE" in said[-1] and len(models.replies()) == len(said)
    assert models.ledger.tokens == 3 + 17, "of the answer alone"
    assert any("no model answers; they are asked again in" in line for line in told)


def test_nothing_is_waited_for_beyond_the_time_that_is_left(store, made):
    with ModelServer(otherwise="limit") as server:
        models = made(server, store, patience=Patience(), tolerance=BreakerLimits(1, rest=90.0))
        models.time_left.set(0.2)
        assert "the time of the search is over" in "".join(talk(models, REQUESTS[:1]))
        with pytest.raises(ModelError, match="the time of the search is over"):
            models.wait()


def test_an_answer_that_is_not_taken_is_stored_with_the_reason(store, made):
    with ModelServer(otherwise="good_edit") as server:
        models = made(server, store)
        for each in REQUESTS[:3]:
            models.complete(each)
        models.refuse(REQUESTS[1], "it was tried before")
        models.refuse(REQUESTS[1], "it was tried before")
        assert models.recording.refused() == 1 and len(models.replies()) == 3
        again = made(server, store, run=store.runs()[0])
        assert again.recording.refused() == 1
        again.complete(REQUESTS[1])
        again.refuse(REQUESTS[1], "it was tried before")
        assert again.recording.refused() == 1 and len(server.seen) == 3
