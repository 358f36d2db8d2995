"""Test fixtures: clients without a network, and a clock that only sleeping moves."""

from __future__ import annotations

import threading

from search.llm.exchange import Answer, Message, ModelError, Reply, Request


def request(text: str = "Make it faster.", **changes: object) -> Request:
    """A request with one message."""
    settings: dict[str, object] = {"model": "m", "max_tokens": 100, "seed": 1, **changes}
    return Request(messages=(Message("user", text),), **settings)  # type: ignore[arg-type]


def answer(text: str = "Done.", tokens_in: int = 10, tokens_out: int = 5) -> Answer:
    """An answer as from a remote model, with unknown cost."""
    return Answer(text, tokens_in, tokens_out, None, "stop", 0.5)


class Saying:
    """A client that gives replies in order and repeats the last; it records the requests."""

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
        """The time in seconds."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Moves the clock."""
        self.slept.append(seconds)
        self.now += seconds


def fault(kind: str = "server", **changes: object) -> ModelError:
    """An error as from a remote model."""
    return ModelError(kind, f"a fault of kind {kind}", **changes)  # type: ignore[arg-type]
