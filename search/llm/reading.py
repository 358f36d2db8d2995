"""A reading: an answer as it comes in, piece by piece, and what is known of it if it breaks off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from search.llm.endpoint import Endpoint
from search.llm.exchange import Answer, ModelError, Request
from search.llm.tokens import most_tokens, request_tokens

REFUSED = ("content_filter", "refusal")


class Reading:
    """One answer. began: whether the endpoint has accepted the request."""

    def __init__(self, request: Request, endpoint: Endpoint, clock: Callable[[], float]):
        self.began = False
        self._request = request
        self._endpoint = endpoint
        self._clock = clock
        self._since = clock()
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._ended = ""
        self._pieces = 0
        self._usage: tuple[int, int] | None = None

    def begin(self) -> None:
        """The endpoint has accepted the request."""
        self.began = True

    def take(self, piece: Any) -> None:
        """Adds a chunk, or a whole completion; ModelError when the deadline has passed."""
        choices = getattr(piece, "choices", None)
        self._pieces += choices is not None
        for choice in choices or ():
            said = getattr(choice, "delta", None) or getattr(choice, "message", None)
            self._text.append(getattr(said, "content", None) or "")
            self._refusal.append(getattr(said, "refusal", None) or "")
            self._ended = choice.finish_reason or self._ended
        usage = getattr(piece, "usage", None)
        if usage is not None:
            self._usage = int(usage.prompt_tokens), int(usage.completion_tokens)
        if self.seconds > self._endpoint.deadline:
            raise ModelError(
                "timeout",
                f"`{self._request.model}` had not answered in full after "
                f"{self._endpoint.deadline:g} s",
                where=self._endpoint.shown,
            )

    def finish(self) -> None:
        """Nothing more comes; ModelError where that cannot be all."""
        if self._ended:
            return
        if not self._pieces:
            raise ModelError(
                "protocol",
                "what answers sends no chat completion",
                where=self._endpoint.shown,
                allowed="the address of an OpenAI-compatible endpoint, mostly one that ends in /v1",
                hint="set OPENAI_BASE_URL",
            )
        raise ModelError(
            "cut",
            f"the answer of `{self._request.model}` broke off after "
            f"{len(self._said('text'))} characters",
            where=self._endpoint.shown,
        )

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return self._clock() - self._since

    @property
    def tokens(self) -> tuple[int, int]:
        """Tokens in and out so far: as the endpoint says, else estimated from above."""
        if self._usage is not None:
            return self._usage
        said = self._said("text") + self._said("refusal")
        return request_tokens(self._request), most_tokens(said)

    def answer(self) -> Answer:
        """All of it, at a cost that is not known here."""
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
        )

    def _said(self, what: str) -> str:
        """What came so far. Halves of a character are joined; one that is alone is no text."""
        said = "".join(self._refusal if what == "refusal" else self._text)
        return said.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
