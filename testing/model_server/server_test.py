"""The server speaks the protocol, and says what it was told to say."""

import json
import urllib.error
import urllib.request

import pytest

from testing.model_server.scripted import Scripted
from testing.model_server.server import ModelServer

GUARD = 1800.0  # seconds: only what hangs waits so long


def post(server, prompt="Hello", key="k", path="/chat/completions", **words):
    body = {"model": "m", "messages": [{"role": "user", "content": prompt}], **words}
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(server.base_url + path, json.dumps(body).encode(), headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=GUARD) as response:
            return response.status, response.headers, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def said(server, **words):
    return json.loads(post(server, **words)[2])["choices"][0]["message"]["content"]


def test_answers_come_in_order_then_by_words_then_otherwise(tmp_path):
    (tmp_path / "later.md").write_text('+++\nwords = ["repair"]\n+++\nrepaired')
    with ModelServer(
        [Scripted("one", "first"), Scripted("two", "second")],
        folder=tmp_path,
        otherwise=Scripted("rest", "otherwise"),
    ) as server:
        found = [said(server, prompt=p) for p in ("repair", "repair", "repair it", "Hello")]
        assert found == ["first", "second", "repaired", "otherwise"]
        assert [s.answer for s in server.seen] == ["one", "two", "later", "rest"]
        assert server.seen[2].prompt == "repair it"
        assert server.seen[0].authorization == "Bearer k"


def test_what_nothing_was_written_for_is_an_error():
    with ModelServer() as server:
        status, _, text = post(server)
        assert status == 400 and "no answer is left" in text


def test_a_stream_is_the_whole_text_in_pieces():
    with ModelServer(["good_edit"]) as server:
        _, headers, text = post(server, stream=True, stream_options={"include_usage": True})
        assert headers["Content-Type"] == "text/event-stream"
        events = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
        assert events[-1] == "[DONE]"
        chunks = [json.loads(e) for e in events[:-1]]
        pieces = [c["choices"][0]["delta"].get("content", "") for c in chunks[:-1]]
        assert len(pieces) > 3
        assert ">>>>>>> REPLACE" in "".join(pieces)
        assert chunks[-2]["choices"][0]["finish_reason"] == "stop"
        assert chunks[-1]["usage"]["prompt_tokens"] == 1


def test_headers_and_errors_are_as_scripted():
    with ModelServer(["limit", "fault"]) as server:
        status, headers, text = post(server)
        assert (status, headers["Retry-After"]) == (429, "7")
        assert json.loads(text)["error"]["code"] == "rate_limit_exceeded"
        assert post(server)[0] == 500


def test_a_wrong_key_is_refused_and_repeated():
    with ModelServer(otherwise="good_edit", key="right") as server:
        status, _, text = post(server, key="wrong")
        assert status == 401 and "wrong" in text
        assert post(server, key="right")[0] == 200
        assert [s.answer for s in server.seen] == ["wrong_key", "good_edit"]


def test_another_page_is_not_found():
    with ModelServer(otherwise="good_edit") as server:
        assert post(server, path="/completions")[0] == 404
        assert server.seen == ()


def test_an_answer_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match="no answer `nothing`; there are"):
        ModelServer(["nothing"])


def test_of_several_answers_a_request_is_always_given_the_same():
    several = [Scripted(str(n), str(n)) for n in range(4)]
    with ModelServer(otherwise=several) as server, ModelServer(otherwise=several) as another:
        found = [post(server, f"Request {n}")[2] for n in range(12)]
        assert found == [post(another, f"Request {n}")[2] for n in range(12)]
        assert {s.answer for s in server.seen} == {"0", "1", "2", "3"}
