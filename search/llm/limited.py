"""Rate limits: the requests in flight, and the requests and tokens in a minute."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from search.llm.client import Client
from search.llm.exchange import Answer, Request
from search.llm.tokens import request_tokens

MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class EndpointLimits:
    """The rate limits of an endpoint."""

    at_once: int = 4  # concurrent requests
    # In any minute; None: no limit.
    requests: int | None = None
    tokens: int | None = None

    def __post_init__(self) -> None:
        given = [n for n in (self.at_once, self.requests, self.tokens) if n is not None]
        if min(given) < 1:
            raise ValueError(f"limits are at least 1: {self}")


class Limited:
    """A client that waits until its limits allow a request; see `client.Client`.

    A request counts with its longest possible answer, as endpoints do. A request above the limit of
    tokens is sent when there was no other for a minute.
    """

    def __init__(
        self,
        client: Client,
        limits: EndpointLimits,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ):
        self._client = client
        self._limits = limits
        self._clock = clock
        self._sleep = sleep
        self._free = threading.BoundedSemaphore(limits.at_once)
        self._turn = threading.Lock()
        self._sent: deque[tuple[float, int]] = deque()

    def complete(self, request: Request) -> Answer:
        """The client's answer, after the necessary wait."""
        with self._free:
            # Only one request waits for the limits at a time, so that none is overtaken forever.
            with self._turn:
                self._wait(request_tokens(request) + request.max_tokens)
            return self._client.complete(request)

    def _wait(self, tokens: int) -> None:
        while True:
            now = self._clock()
            while self._sent and self._sent[0][0] + MINUTE <= now:
                self._sent.popleft()
            if self._fits(tokens):
                self._sent.append((now, tokens))
                return
            self._sleep(self._sent[0][0] + MINUTE - now)

    def _fits(self, tokens: int) -> bool:
        if not self._sent:
            return True
        requests, most = self._limits.requests, self._limits.tokens
        within = requests is None or len(self._sent) < requests
        return within and (most is None or sum(t for _, t in self._sent) + tokens <= most)
