"""A reading: an answer that arrives piece by piece, and its partial contents if it breaks off."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from search.llm.endpoint import Endpoint
from search.llm.exchange import Answer, Call, ModelError, Request
from search.llm.tokens import most_tokens, request_tokens

REFUSED = ("content_filter", "refusal")
DONE = b"\ndata:[DONE]"  # the last line of a stream; some servers send no other end
TAIL = 64  # bytes of the stream that are searched for it
MOST_BYTES = 1 << 26


class AnswerReading:
    """One answer. began: whether the endpoint has accepted the request.

    deadline: seconds for the whole answer; None: the endpoint's.
    """

    def __init__(
        self,
        request: Request,
        endpoint: Endpoint,
        clock: Callable[[], float],
        deadline: float | None = None,
    ):
        self.began = False
        self._deadline = endpoint.deadline if deadline is None else deadline
        self._bytes = 0
        self._tail = b""
        self._streams = self._events = False
        self._request = request
        self._endpoint = endpoint
        self._clock = clock
        self._since = clock()
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._calls: dict[int, list[str]] = {}  # by index: id, name, arguments
        self._ended = ""
        self._pieces = 0
        self._usage: tuple[int, int] | None = None

    def begin(self, streams: bool = False, events: bool = False) -> None:
        """Records that the endpoint has accepted the request.

        streams: whether the data goes through `watched`. events: whether it is declared as a stream
        of events.
        """
        self.began = True
        self._streams, self._events = streams, events

    @property
    def complete(self) -> bool:
        """Whether the answer is complete, even if the connection breaks."""
        return bool(self._ended) or (self._pieces > 0 and DONE in self._tail.replace(b" ", b""))

    def watched(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Passes the data on. A stream that only keeps the connection open also ends at the
        deadline; an endless one ends at MOST_BYTES."""
        for chunk in chunks:
            self._bytes += len(chunk)
            self._tail = (self._tail + chunk)[-TAIL:]
            yield chunk
            self._require_time()
            if self._bytes > MOST_BYTES:
                raise self._error("cut", f"has more than {MOST_BYTES} bytes")

    def take(self, piece: Any) -> None:
        """Adds a chunk, or a whole completion. Raises ModelError after the deadline."""
        choices = getattr(piece, "choices", None)
        self._pieces += choices is not None
        for choice in choices or ():
            if getattr(choice, "index", 0):  # only one answer was requested
                continue
            said = getattr(choice, "delta", None) or getattr(choice, "message", None)
            self._text.append(getattr(said, "content", None) or "")
            self._refusal.append(getattr(said, "refusal", None) or "")
            for number, call in enumerate(getattr(said, "tool_calls", None) or ()):
                self._take_call(number, call)
            self._ended = choice.finish_reason or self._ended
        usage = getattr(piece, "usage", None)
        self._usage = _counted(usage) or self._usage
        self._require_time()

    def _take_call(self, number: int, call: Any) -> None:
        """Adds a function call or a part of one. In a stream it has an index."""
        at = getattr(call, "index", None)
        found = self._calls.setdefault(number if at is None else at, ["", "", ""])
        function = getattr(call, "function", None)
        pieces = (call.id, getattr(function, "name", None), getattr(function, "arguments", None))
        for place, piece in enumerate(pieces):
            found[place] += piece if isinstance(piece, str) else ""

    def finish(self) -> None:
        """Checks the end of the data. Raises ModelError if the answer is incomplete."""
        if self.complete:
            return
        if not self._pieces and self._streams and (self._events or not self._bytes):
            raise self._error("cut", "ended before its first word")
        if not self._pieces:
            raise ModelError(
                "protocol",
                "what answers sends no chat completion",
                where=self._endpoint.shown,
                allowed="the address of an OpenAI-compatible endpoint, mostly one that ends in /v1",
                hint="set OPENAI_BASE_URL",
            )
        raise self._error("cut", f"broke off after {len(self._said('text'))} characters")

    def _require_time(self) -> None:
        if self.seconds <= self._deadline or self.complete:
            return
        raise ModelError(
            "timeout",
            f"`{self._request.model}` had not answered in full after {self._deadline:g} s",
            where=self._endpoint.shown,
        )

    def _error(self, kind: str, what: str) -> ModelError:
        said = f"the answer of `{self._request.model}` {what}"
        return ModelError(kind, said, where=self._endpoint.shown)

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return self._clock() - self._since

    @property
    def tokens(self) -> tuple[int, int]:
        """Input and output tokens so far: reported by the endpoint, else an upper estimate."""
        if self._usage is not None:
            return self._usage
        said = self._said("text") + self._said("refusal")
        said += "".join("".join(call) for call in self._calls.values())
        return request_tokens(self._request), most_tokens(said)

    @property
    def reported(self) -> tuple[int, int]:
        """Input and output tokens reported by the endpoint; zeros if it reports none."""
        return self._usage or (0, 0)

    def answer(self) -> Answer:
        """The whole answer; its cost is not known here."""
        refused = self._said("refusal")
        tokens_in, tokens_out = self.tokens
        finish = "length" if self._ended == "length" else "stop"
        return Answer(
            text=self._endpoint.scrubbed(refused or self._said("text")),
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            cost=None,
            finish="refusal" if refused or self._ended in REFUSED else finish,
            seconds=self.seconds,
            usage="estimated" if self._usage is None else "reported",
            calls=tuple(self._called()),
        )

    def _called(self) -> Iterator[Call]:
        for number, (of, name, arguments) in sorted(self._calls.items()):
            if name:
                said = (of or f"call_{number}", name, arguments)
                yield Call(*(self._endpoint.scrubbed(text) for text in said))

    def _said(self, what: str) -> str:
        """The text so far. Surrogate pairs are joined; a lone surrogate is replaced."""
        said = "".join(self._refusal if what == "refusal" else self._text)
        return said.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _counted(usage: Any) -> tuple[int, int] | None:
    """The input and output tokens in an endpoint's usage; None if they are invalid."""
    found = getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None)
    tokens_in, tokens_out = found
    if not (isinstance(tokens_in, int) and isinstance(tokens_out, int)):
        return None
    return (tokens_in, tokens_out) if min(tokens_in, tokens_out) >= 0 else None
