"""The real client over loopback: each kind of answer, with and without streaming."""

import json
import logging
import sys
import threading
import time

import pytest

from ir.errors import KernelError
from search.llm.endpoint import Endpoint
from search.llm.exchange import Message, ModelError, Request
from search.llm.remote import Remote
from search.llm.testing import request
from search.llm.tokens import request_tokens
from testing.model_server.scripted import Scripted
from testing.model_server.server import ModelServer

KEY = "sk-0123456789-abcdef"
GUARD = 1800.0  # seconds; only a hang takes so long
both = pytest.mark.parametrize("stream", [True, False])


@pytest.fixture
def open_remote(monkeypatch):
    """Makes a client for a server, and closes it at the end."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    made = []

    def open_one(server, **changes):
        made.append(Remote(Endpoint(server.base_url, KEY, **changes)))
        return made[-1]

    yield open_one
    for remote in made:
        remote.close()


def error_of(remote, asked=None):
    with pytest.raises(ModelError) as caught:
        remote.complete(asked or request())
    return caught.value


@both
def test_an_answer_comes_with_its_tokens(stream, open_remote):
    with ModelServer([Scripted("a", "Grüße, tile(n, 64)", usage=(17, 5))]) as server:
        answer = open_remote(server, stream=stream).complete(request())
    assert (answer.text, answer.finish) == ("Grüße, tile(n, 64)", "stop")
    assert (answer.tokens_in, answer.tokens_out, answer.usage) == (17, 5, "reported")
    assert answer.cost is None
    assert answer.seconds > 0


@both
def test_half_a_character_is_no_text(stream, open_remote):
    text = "a \ud800 and " + "." * 3 + "\U0001f600" * 9 + " \udc00"  # includes surrogate pairs
    with ModelServer([Scripted("a", text)]) as server:
        answer = open_remote(server, stream=stream).complete(request())
    assert answer.text == "a \ufffd and " + "." * 3 + "\U0001f600" * 9 + " \ufffd"


@both
def test_a_request_says_all_of_it(stream, open_remote):
    messages = (Message("system", "You write kernels."), Message("user", "Grüße"))
    asked = Request("org/m:7", messages, temperature=0.5, max_tokens=77, seed=3)
    with ModelServer(otherwise="good_edit") as server:
        open_remote(server, stream=stream).complete(asked)
        (seen,) = server.seen
    assert seen.authorization == f"Bearer {KEY}"
    words = {k: v for k, v in seen.body.items() if not k.startswith("stream")}
    assert words == {
        "model": "org/m:7",
        "messages": [
            {"role": "system", "content": "You write kernels."},
            {"role": "user", "content": "Grüße"},
        ],
        "temperature": 0.5,
        "max_tokens": 77,
        "seed": 3,
    }
    assert bool(seen.body.get("stream")) is stream


def test_no_seed_is_sent_where_there_is_none(open_remote):
    with ModelServer(otherwise="good_edit") as server:
        open_remote(server).complete(request(seed=None))
        assert "seed" not in server.seen[0].body


@both
@pytest.mark.parametrize(
    ("name", "finish", "text"),
    [
        ("refusal", "refusal", "I cannot help with that."),
        ("filtered", "refusal", "It would"),
        ("too_long", "length", "A thorough analysis of the matter comes first, and before it"),
    ],
)
def test_an_answer_says_how_it_ended(name, finish, text, stream, open_remote):
    with ModelServer([name]) as server:
        answer = open_remote(server, stream=stream).complete(request())
    assert (answer.finish, answer.text) == (finish, text)


@both
def test_tokens_that_are_not_told_are_estimated_from_above(stream, open_remote):
    with ModelServer(["uncounted"]) as server:
        answer = open_remote(server, stream=stream).complete(request())
    assert answer.usage == "estimated"
    assert answer.tokens_in == request_tokens(request())
    assert answer.tokens_out >= len("Nobody counted this.".split())


@pytest.mark.parametrize("name", ["cut", "broken"])
def test_a_stream_that_ends_early_is_an_error_that_nobody_counted(name, open_remote):
    with ModelServer([name]) as server:
        error = error_of(open_remote(server))
    assert error.kind == {"cut": "cut", "broken": "connection"}[name]
    assert error.transient
    assert (error.tokens_in, error.tokens_out, error.cost) == (0, 0, 0.0)


def test_a_whole_answer_that_ends_early_is_an_error(open_remote):
    with ModelServer(["cut"]) as server:
        error = error_of(open_remote(server, stream=False))
    assert error.kind == "connection" and error.transient


def test_a_stream_of_nonsense_is_an_error(open_remote):
    body = 'data: {"choices": [{\n\ndata: more\n\n'
    headers = {"Content-Type": "text/event-stream"}
    with ModelServer([Scripted("a", body=body, headers=headers)]) as server:
        error = error_of(open_remote(server))
    assert error.kind == "cut" and "cannot be read" in error.what


def test_an_error_in_the_middle_of_a_stream_is_one(open_remote):
    body = 'data: {"error": {"message": "overloaded"}}\n\n'
    headers = {"Content-Type": "text/event-stream"}
    with ModelServer([Scripted("a", body=body, headers=headers)]) as server:
        error = error_of(open_remote(server))
    assert error.kind == "server" and error.transient and "overloaded" in error.what


def test_an_endpoint_that_does_not_stream_is_understood(open_remote):
    whole = {
        "id": "0",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"content": "All of it."}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
    }
    headers = {"Content-Type": "application/json"}
    with ModelServer([Scripted("a", body=json.dumps(whole), headers=headers)]) as server:
        answer = open_remote(server).complete(request())
    assert (answer.text, answer.tokens_in, answer.tokens_out) == ("All of it.", 3, 4)


@both
@pytest.mark.parametrize(
    ("name", "kind", "transient", "lasting", "said"),
    [
        ("limit", "limit", True, False, "Rate limit reached."),
        ("quota", "quota", False, True, "You exceeded your current quota."),
        ("fault", "server", True, False, "The server had an error."),
        ("unknown_model", "model", False, True, "The model does not exist."),
        ("too_large", "request", False, False, "maximum context length"),
    ],
)
def test_an_error_is_told(name, kind, transient, lasting, said, stream, open_remote):
    with ModelServer([name]) as server:
        error = error_of(open_remote(server, stream=stream))
        assert len(server.seen) == 1
    assert (error.kind, error.transient, error.lasting) == (kind, transient, lasting)
    assert said in error.what
    assert error.where.startswith("http://127.0.0.1:")
    assert (error.tokens_in, error.tokens_out, error.cost) == (0, 0, 0.0)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "Retry-After": "1"}, 0.25),
        ({"Retry-After": "soon"}, None),
        ({}, None),
    ],
)
def test_an_endpoint_may_say_how_long_to_wait(headers, seconds, open_remote):
    with ModelServer([Scripted("a", status=429, headers=headers)]) as server:
        assert error_of(open_remote(server)).retry_after == seconds


def test_a_wait_may_be_given_as_a_date(open_remote):
    with ModelServer([Scripted("a", status=429, headers={"Retry-After": LATE})]) as server:
        assert error_of(open_remote(server)).retry_after > 3600 * 24 * 365


LATE = "Wed, 21 Oct 2065 07:28:00 GMT"


@both
def test_a_page_for_people_is_no_endpoint(stream, open_remote):
    with ModelServer(["page"]) as server:
        error = error_of(open_remote(server, stream=stream))
    assert error.kind == "protocol" and error.lasting
    assert "OPENAI_BASE_URL" in error.hint


OUTAGES = {
    "empty": ("cut", "ended before its first word"),
    "dead": ("connection", "the connection failed"),
    "garbage": ("cut", "cannot be read"),
    "error_in_200": ("server", "upstream is down"),
    "pings": ("timeout", "had not answered in full after 0.3 s"),
}


@pytest.mark.parametrize("name", OUTAGES)
def test_an_outage_passes_and_takes_no_tokens(name, open_remote):
    kind, said = OUTAGES[name]
    with ModelServer([name, "good_edit"]) as server:
        remote = open_remote(server, deadline=0.3 if name == "pings" else 60.0)
        error = error_of(remote)
        assert "REPLACE" in remote.complete(request()).text
    assert (error.kind, error.transient, error.lasting) == (
        kind,
        True,
        False,
    ) and said in error.what
    assert (error.tokens_in, error.tokens_out, error.cost) == (0, 0, 0.0)


def test_a_page_for_people_after_an_answer_is_an_outage(open_remote):
    with ModelServer(["good_edit", "page"]) as server:
        remote = open_remote(server)
        remote.complete(request())
        error = error_of(remote)
    assert error.kind == "server" and error.transient and not error.lasting


def test_a_model_that_falls_silent_in_its_answer_is_given_up(open_remote):
    slow = Scripted("a", "One word, then silence.", pause=60.0)
    with ModelServer([slow]) as server:
        error = error_of(open_remote(server, silence=0.2))
    assert error.kind == "timeout" and "silent for too long" in error.what


def test_what_the_endpoint_reports_of_a_failed_request_is_paid(open_remote):
    frame = {"id": "0", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
    chunk = {**frame, "choices": [], "usage": usage}
    headers = {"Content-Type": "text/event-stream"}
    cut = Scripted("a", body=f"data: {json.dumps(chunk)}\n\n", headers=headers)
    with ModelServer([cut]) as server:
        error = error_of(open_remote(server))
    assert (error.kind, error.tokens_in, error.tokens_out, error.cost) == ("cut", 7, 2, None)


def test_an_answer_whose_connection_breaks_after_its_end_is_taken(open_remote):
    with ModelServer([Scripted("a", "All of it.", broken=True)]) as server:
        assert open_remote(server).complete(request()).text == "All of it."


def test_nothing_is_waited_for_beyond_the_time_that_is_left(open_remote):
    with ModelServer(otherwise="slow") as server:
        remote = open_remote(server)
        remote._time_left.set(0.3)
        assert error_of(remote).kind == "timeout"
        error = error_of(remote)
    assert error.kind == "gone" and error.what == "the time of the search is over"
    assert len(server.seen) == 1


def test_a_page_of_errors_is_not_quoted(open_remote):
    page = Scripted("a", status=502, body="<html><body>Bad gateway</body></html>")
    with ModelServer([page]) as server:
        error = error_of(open_remote(server))
    assert error.kind == "server"
    assert "a page for people" in error.what and "<body>" not in str(error)


def test_where_nobody_answers_the_connection_failed(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ModelServer() as server:
        base_url = server.base_url
    error = error_of(Remote(Endpoint(base_url, KEY)))
    assert error.kind == "connection" and error.transient
    assert (error.tokens_in, error.cost) == (0, 0.0)
    assert "OPENAI_BASE_URL" in error.hint


@both
def test_a_model_that_says_nothing_is_given_up(stream, open_remote):
    with ModelServer(["slow"]) as server:
        error = error_of(open_remote(server, stream=stream, silence=0.2))
    assert error.kind == "timeout" and error.transient
    assert (error.tokens_in, error.tokens_out, error.cost) == (0, 0, 0.0)


def test_a_model_that_talks_too_long_is_given_up(open_remote):
    with ModelServer(["dripping"]) as server:
        error = error_of(open_remote(server, deadline=0.1))
    assert error.kind == "timeout" and "0.1 s" in error.what
    assert error.tokens_out == 0


@both
def test_words_that_a_model_does_not_take_are_left_out_from_then_on(stream, open_remote):
    asked = request(temperature=0.5)
    order = ["no_temperature", "no_max_tokens", "good_edit", "good_edit"]
    with ModelServer(order) as server:
        remote = open_remote(server, stream=stream)
        assert "REPLACE" in remote.complete(asked).text
        remote.complete(asked)
        last = [seen.body for seen in server.seen[2:]]
        assert len(server.seen) == 4
    for body in last:
        assert "temperature" not in body and "max_tokens" not in body
        assert body["max_completion_tokens"] == 100


def test_a_model_that_takes_nothing_is_an_error(open_remote):
    with ModelServer(otherwise="no_temperature") as server:
        error = error_of(open_remote(server))
        assert len(server.seen) == 2
    assert error.kind == "request"


def test_a_wrong_key_is_said_at_once_and_never_shown(open_remote, caplog, capsys):
    with caplog.at_level(logging.DEBUG), ModelServer(key="another") as server:
        error = error_of(open_remote(server))
        assert len(server.seen) == 1
    assert error.kind == "key" and error.lasting and not error.transient
    assert "OPENAI_API_KEY" in error.what
    everything = [str(error), repr(error.__context__), caplog.text, *capsys.readouterr()]
    assert not any(KEY in text for text in everything)


@pytest.mark.parametrize("status", [400, 403, 429, 500])
def test_a_key_that_an_endpoint_repeats_is_not_shown(status, open_remote):
    error = Scripted("a", status=status, error={"message": f"no good: {KEY}"})
    with ModelServer([error]) as server:
        assert KEY not in str(error_of(open_remote(server)))


def test_a_key_that_a_model_repeats_is_not_kept(open_remote):
    with ModelServer([Scripted("a", f"Your key is {KEY}.")]) as server:
        assert open_remote(server).complete(request()).text == "Your key is ***."


def test_many_ask_at_once(open_remote):
    texts = [f"text {n}" for n in range(8)]
    with ModelServer([Scripted(t, t) for t in texts], gather=2) as server:
        remote, found = open_remote(server), []
        threads = [
            threading.Thread(target=lambda: found.append(remote.complete(request()).text))
            for _ in texts
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert server.most_at_once > 1
    assert sorted(found) == texts


def test_what_is_under_way_is_broken_off(open_remote):
    with ModelServer(otherwise="dripping") as server:
        remote, caught = open_remote(server), []

        def ask():
            try:
                while True:
                    remote.complete(request())
            except ModelError as error:
                caught.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        while not server.seen:
            time.sleep(0.01)
        remote.close()
        thread.join(GUARD)
    assert [e.kind for e in caught] == ["closed"]


def test_without_the_package_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(KernelError, match="`openai` cannot be imported") as caught:
        Remote(Endpoint("http://127.0.0.1:1/v1", KEY))
    assert "install it" in caught.value.hint
