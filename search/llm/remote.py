"""A remote model: one attempt at an exchange, over the OpenAI chat completions protocol.

Only this module uses the `openai` package.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from ir.errors import KernelError
from search.llm.endpoint import BASE_URL, KEY, Endpoint
from search.llm.exchange import Answer, Message, ModelError, Request, Tool
from search.llm.faults import QUOTED, fault
from search.llm.reading import AnswerReading
from search.llm.time_left import TimeLeft

CONNECT_SECONDS = 15.0
# Parameters that some models do not accept, with their replacements (None: left out).
UNSUPPORTED = {
    "max_tokens": "max_completion_tokens",
    "temperature": None,
    "seed": None,
    "stream_options": None,
    "reasoning_effort": None,
    "tools": None,
}


class Remote:
    """Sends each request once to an endpoint; see `client.Client`."""

    def __init__(
        self,
        endpoint: Endpoint,
        clock: Callable[[], float] = time.monotonic,
        time_left: TimeLeft | None = None,
    ):
        """time_left: for all requests; None: no limit."""
        self.endpoint = endpoint
        self._time_left = time_left or TimeLeft(clock)
        self._answered = False
        self._openai = _package()
        self._clock = clock
        self._lock = threading.Lock()
        self._closed = False
        self._left_out: dict[str, frozenset[str]] = {}
        self._client = self._openai.OpenAI(
            api_key=endpoint.key,
            base_url=endpoint.base_url,
            max_retries=0,
        )

    def complete(self, request: Request) -> Answer:
        """The model's answer. Raises ModelError if there is none."""
        while True:
            reading, error = self._attempt(request)
            if error is None or (reading.complete and not self._closed):
                self._answered = True
                return reading.answer()
            if self._closed:
                error = ModelError("closed", "it was broken off", where=self.endpoint.shown)
            if not self._leave_out(request.model, error):
                break
        # Raised outside of the except block, because the package's exception may hold secrets.
        found = fault(error, self._openai, self.endpoint, reading)
        raise found.passing() if found.kind == "protocol" and self._answered else found

    def close(self) -> None:
        """Cancels requests in flight."""
        self._closed = True
        self._client.close()

    def _attempt(self, request: Request) -> tuple[AnswerReading, Exception | None]:
        deadline = self._time_left.of(self.endpoint.deadline)
        reading = AnswerReading(request, self.endpoint, self._clock, deadline)
        try:
            for piece in self._pieces(request, reading):
                reading.take(piece)
            reading.finish()
        except Exception as error:  # a model's answer may be anything
            expected = self._openai.OpenAIError, ModelError, OSError
            if not (reading.began or self._closed or isinstance(error, expected)):
                raise
            return reading, error
        return reading, None

    def _pieces(self, request: Request, reading: AnswerReading) -> Iterator[Any]:
        """The pieces of an answer; without streaming, one complete piece."""
        silence = self._time_left.of(self.endpoint.silence)
        timeout = self._openai.Timeout(silence, connect=min(silence, CONNECT_SECONDS))
        answer = self._client.chat.completions.create(**self._words(request), timeout=timeout)
        if not self.endpoint.stream:
            reading.begin()
            yield answer
            return
        with answer:
            response = answer.response
            kind = response.headers.get("content-type", "")
            reading.begin(streams=True, events="event-stream" in kind)
            chunks = response.iter_bytes
            response.iter_bytes = lambda *size: reading.watched(chunks(*size))
            if "json" in kind:
                yield self._whole(json.loads(response.read()))
            else:
                yield from answer

    def _whole(self, found: Any) -> Any:
        """A completion that arrived as a whole. Raises ModelError if it is an error."""
        if isinstance(found, dict) and found.get("error") and not found.get("choices"):
            said = self.endpoint.scrubbed(json.dumps(found["error"]))
            what = f"the endpoint answers with an error: {said[:QUOTED]}"
            raise ModelError("server", what, where=self.endpoint.shown)
        return self._openai.types.chat.ChatCompletion.construct(**found)

    def _words(self, request: Request) -> dict[str, Any]:
        words: dict[str, Any] = {
            "model": request.model,
            "messages": [_message(m) for m in request.messages],
            "temperature": request.temperature,
            "max_tokens": request.max_tokens,
        }
        if request.seed is not None:
            words["seed"] = request.seed
        if request.effort:
            words["reasoning_effort"] = request.effort
        if request.tools:
            words["tools"] = [_function(t) for t in request.tools]
        if self.endpoint.stream:
            words |= {"stream": True, "stream_options": {"include_usage": True}}
        left_out = self._left_out.get(request.model, frozenset())
        if "tools" in left_out:  # the model does not accept results of calls either
            words["messages"] = [_plain(m) for m in request.messages]
        for name in left_out:
            value = words.pop(name, None)
            if instead := UNSUPPORTED[name]:
                words[instead] = value
        return words

    def _leave_out(self, model: str, error: Exception) -> bool:
        """Whether the error says that the model does not accept a parameter, which is then left
        out."""
        if not isinstance(error, self._openai.BadRequestError):
            return False
        said = f"{error.message} '{error.param}'".replace("`", "'").replace('"', "'")
        said += " tools " if "tool choice" in said or "tool_choice" in said else ""
        with self._lock:
            before = self._left_out.get(model, frozenset())
            named = {n for n in UNSUPPORTED if f"'{n}'" in said or f" {n} " in said} - before
            self._left_out[model] = before | named
        return bool(named)


def _message(message: Message) -> dict[str, Any]:
    """A message in the protocol's form."""
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call, "content": message.content}
    table: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.calls:
        table["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for c in message.calls
        ]
    return table


def _plain(message: Message) -> dict[str, Any]:
    """A message for a model without function calls."""
    called = "".join(f"\n{c.name} {c.arguments}" for c in message.calls)
    role = "user" if message.role == "tool" else message.role
    return {"role": role, "content": (message.content + called).strip() or "(nothing)"}


def _function(tool: Tool) -> dict[str, Any]:
    """A function in the protocol's form."""
    argument = {tool.argument: {"type": "string", "description": tool.meaning}}
    properties = argument if tool.argument else {}
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    function = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return {"type": "function", "function": function}


def _package() -> ModuleType:
    """The `openai` package, imported late because that is slow. Raises KernelError if it is not
    installed."""
    try:
        import openai
    except ImportError as error:
        raise KernelError(
            f"the Python package `openai` cannot be imported here: {error}",
            where=f"{KEY}, {BASE_URL}",
            hint="install it, or search without a model",
        ) from None
    return openai
