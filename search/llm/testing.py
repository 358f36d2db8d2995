"""Samples for tests: clients that need no network, and time that passes when told to."""

from __future__ import annotations

import threading

from search.llm.exchange import Answer, Message, ModelError, Reply, Request


def request(text: str = "Make it faster.", **changes: object) -> Request:
    """A request with one message."""
    settings: dict[str, object] = {"model": "m", "max_tokens": 100, "seed": 1, **changes}
    return Request(messages=(Message("user", text),), **settings)  # type: ignore[arg-type]


def answer(text: str = "Done.", tokens_in: int = 10, tokens_out: int = 5) -> Answer:
    """An answer as a remote model gives it: at a cost that is not known."""
    return Answer(text, tokens_in, tokens_out, None, "stop", 0.5)


class Saying:
    """A client that gives replies in order, the last one for ever; it notes what it is asked."""

    def __init__(self, *replies: Reply):
        self._replies = list(replies)
        self._lock = threading.Lock()
        self.asked: list[Request] = []

    def complete(self, request: Request) -> Answer:
        """The next reply."""
        with self._lock:
            self.asked.append(request)
            reply = self._replies[0] if len(self._replies) == 1 else self._replies.pop(0)
        if isinstance(reply, ModelError):
            raise reply
        return reply


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def clock(self) -> float:
        """Seconds."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Passes."""
        self.slept.append(seconds)
        self.now += seconds


def fault(kind: str = "server", **changes: object) -> ModelError:
    """An error as a remote model raises it."""
    return ModelError(kind, f"a fault of kind {kind}", **changes)  # type: ignore[arg-type]
