"""The server: OpenAI's chat completions over loopback, streamed or not, with scripted answers."""

from __future__ import annotations

import json
import random
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from testing.model_server.scripted import ANSWERS, Scripted, library

PATH = "/v1/chat/completions"
PIECE = 12  # characters of a chunk
UNSCRIPTED = Scripted("unscripted", status=400, error={"message": "no answer is left for this"})


@dataclass(frozen=True, slots=True)
class Seen:
    """A request that the server saw, and the name of what it answered."""

    body: dict[str, Any]
    authorization: str
    answer: str

    @property
    def prompt(self) -> str:
        """The contents of all messages."""
        return "\n".join(m["content"] for m in self.body["messages"])


class ModelServer:
    """A context in which `base_url` answers.

    order: names of answers, or answers, given first, one to each request.  After them, one whose
    words the prompt holds, else `otherwise`, else an error; where there are several, one is drawn
    by the request, always the same for the same.  folder: where answers lie, beside those here.
    key: the only one that is taken; None for any.  gather: no request is answered before so many
    were in flight at once.
    """

    def __init__(
        self,
        order: Sequence[str | Scripted] = (),
        *,
        otherwise: str | Scripted | Sequence[str | Scripted] = UNSCRIPTED,
        folder: Path | None = None,
        key: str | None = None,
        gather: int = 0,
    ):
        self._known = library() | (library(folder) if folder and folder != ANSWERS else {})
        self._order = [self._named(each) for each in order]
        several = [otherwise] if isinstance(otherwise, str | Scripted) else otherwise
        self._otherwise = [self._named(each) for each in several]
        self._key = key
        self._gather = gather
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._at_once = 0
        self._seen: list[Seen] = []
        self.most_at_once = 0
        self.closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._server.owner = self  # type: ignore[attr-defined]

    def __enter__(self) -> ModelServer:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        with self._changed:
            self._changed.notify_all()
        self._server.shutdown()
        self._server.server_close()

    @property
    def base_url(self) -> str:
        """For OPENAI_BASE_URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def seen(self) -> tuple[Seen, ...]:
        """All requests so far."""
        with self._lock:
            return tuple(self._seen)

    def answer(self, body: dict[str, Any], authorization: str) -> Scripted:
        """What is said to a request, which is noted."""
        with self._lock:
            found = self._chosen(body, authorization)
            self._seen.append(Seen(body, authorization, found.name))
            return found

    def enter(self, change: int) -> None:
        """A request begins (1), or its answer does (-1)."""
        with self._changed:
            self._at_once += change
            self.most_at_once = max(self.most_at_once, self._at_once)
            self._changed.notify_all()

    def wait_for_others(self) -> None:
        """Returns when as many requests were in flight at once as are to gather."""
        with self._changed:
            self._changed.wait_for(
                lambda: self.most_at_once >= self._gather or self.closing.is_set()
            )

    def _chosen(self, body: dict[str, Any], authorization: str) -> Scripted:
        if self._key is not None and authorization != f"Bearer {self._key}":
            # Some endpoints repeat what they were sent.
            message = f"Incorrect API key provided: {authorization.removeprefix('Bearer ')}."
            error = {"message": message, "code": "invalid_api_key"}
            return Scripted("wrong_key", status=401, error=error)
        if self._order:
            return self._order.pop(0)
        prompt = Seen(body, "", "").prompt
        fitting = [a for _, a in sorted(self._known.items()) if a.fits(prompt)]
        rng = random.Random(json.dumps(body, sort_keys=True))
        return rng.choice(fitting or self._otherwise)

    def _named(self, given: str | Scripted) -> Scripted:
        if isinstance(given, Scripted):
            return given
        if given not in self._known:
            raise ValueError(f"no answer `{given}`; there are {', '.join(self._known)}")
        return self._known[given]


class _Server(ThreadingHTTPServer):
    """A thread for each connection."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that is gone, as one whose process ends, is no fault of the server."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        owner: ModelServer = self.server.owner  # type: ignore[attr-defined]
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != PATH:
            return self._whole(404, {}, json.dumps({"error": {"message": "no such page"}}))
        owner.enter(1)
        try:
            answer = owner.answer(body, self.headers.get("Authorization", ""))
            owner.wait_for_others()
            owner.closing.wait(answer.delay)
        finally:
            # Before the answer: a client that has read it may ask again at once.
            owner.enter(-1)
        try:
            self._give(answer, body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged."""

    def _give(self, answer: Scripted, body: dict[str, Any]) -> None:
        if answer.body is not None:
            self._whole(answer.status, dict(answer.headers), answer.body, "text/html")
        elif answer.status != 200:
            error = {"type": "error", "code": None, "param": None, **(answer.error or {})}
            self._whole(answer.status, dict(answer.headers), json.dumps({"error": error}))
        elif body.get("stream"):
            self._stream(answer, body)
        else:
            text = json.dumps(_completion(answer, body))
            self._whole(200, dict(answer.headers), text, cut=answer.cut is not None)

    def _whole(
        self,
        status: int,
        headers: dict[str, str],
        text: str,
        kind: str = "application/json",
        cut: bool = False,
    ) -> None:
        data = text.encode()
        self.send_response(status)
        for name, value in {"Content-Type": kind, **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if cut else data)
        self.close_connection = self.close_connection or cut

    def _stream(self, answer: Scripted, body: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        closing: threading.Event = self.server.owner.closing  # type: ignore[attr-defined]
        while answer.endless and not closing.wait(answer.pause):
            self._piece(answer.endless)
        for event in _events(answer, body):
            self._piece(f"data: {event}\n\n")
            closing.wait(answer.pause)
        if answer.broken:
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")

    def _piece(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()


def _events(answer: Scripted, body: dict[str, Any]) -> Iterator[str]:
    said, name = answer.refusal or answer.text, "refusal" if answer.refusal else "content"
    end = len(said) if answer.cut is None else answer.cut
    for at in range(0, end, PIECE):
        yield _chunk(body, {name: said[at : min(at + PIECE, end)]})
    for number, call in enumerate(answer.calls):
        yield from _call_events(number, call, body)
    if answer.cut is not None:
        return
    yield _chunk(body, {}, answer.finish)
    usage = _usage(answer, body)
    if usage and (body.get("stream_options") or {}).get("include_usage"):
        yield json.dumps({**_frame(body, "chat.completion.chunk"), "choices": [], "usage": usage})
    yield "[DONE]"


def _call_events(number: int, call: Mapping[str, str], body: dict[str, Any]) -> Iterator[str]:
    """A call of a function in pieces: its name, then its arguments."""
    function = {"name": call["name"], "arguments": ""}
    first = {"index": number, "id": f"call_{number}", "type": "function", "function": function}
    yield _chunk(body, {"tool_calls": [first]})
    text = call["arguments"]
    for at in range(0, len(text), PIECE):
        more = {"index": number, "function": {"arguments": text[at : at + PIECE]}}
        yield _chunk(body, {"tool_calls": [more]})


def _chunk(body: dict[str, Any], delta: dict[str, Any], finish: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return json.dumps({**_frame(body, "chat.completion.chunk"), "choices": [choice]})


def _completion(answer: Scripted, body: dict[str, Any]) -> dict[str, Any]:
    said: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    said["refusal"] = answer.refusal or None
    if answer.calls:
        said["tool_calls"] = [
            {"id": f"call_{number}", "type": "function", "function": dict(call)}
            for number, call in enumerate(answer.calls)
        ]
    choice = {"index": 0, "message": said, "finish_reason": answer.finish}
    frame = {**_frame(body, "chat.completion"), "choices": [choice]}
    return {**frame, "usage": _usage(answer, body)}


def _frame(body: dict[str, Any], sort: str) -> dict[str, Any]:
    return {"id": "chatcmpl-0", "object": sort, "created": 0, "model": body["model"]}


def _usage(answer: Scripted, body: dict[str, Any]) -> dict[str, int] | None:
    """A count of words in place of tokens, unless the answer says one."""
    if answer.usage == ():
        return None
    asked = sum(len(m["content"].split()) for m in body["messages"])
    said = len((answer.refusal or answer.text).split())
    tokens_in, tokens_out = answer.usage or (asked, said)
    total = tokens_in + tokens_out
    return {"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": total}
