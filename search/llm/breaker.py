"""A breaker: an endpoint that refuses for good, or fails again and again, is left alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from search.llm.client import Client
from search.llm.exchange import Answer, ModelError, Request

FOR_GOOD = ("key", "quota", "protocol")  # whatever is asked; `model` is for one model


@dataclass(frozen=True, slots=True)
class Tolerance:
    """in_a_row: failed exchanges, each after all its attempts.  rest: seconds until one more."""

    in_a_row: int = 3
    rest: float = 300.0


class Breaker:
    """A client that asks no more where that is of no use; see `client.Client`.

    After a refusal for good the same error is raised again. After so many failures in a row
    nothing is asked for a while, and then once.
    """

    def __init__(
        self,
        client: Client,
        tolerance: Tolerance = Tolerance(),
        clock: Callable[[], float] = time.monotonic,
    ):
        self._client = client
        self._tolerance = tolerance
        self._clock = clock
        self._lock = threading.Lock()
        self._refused: dict[str, ModelError] = {}
        self._failures = 0
        self._closed_until = 0.0

    def complete(self, request: Request) -> Answer:
        """The client's answer; ModelError at once where it is of no use to ask."""
        with self._lock:
            self._refuse(request)
        try:
            answer = self._client.complete(request)
        except ModelError as error:
            with self._lock:
                self._note(request, error)
            raise
        with self._lock:
            self._failures = 0
        return answer

    def _refuse(self, request: Request) -> None:
        earlier = self._refused.get("") or self._refused.get(request.model)
        if earlier is not None:
            raise earlier.costing(0, 0, 0.0)
        left = self._closed_until - self._clock()
        if self._failures < self._tolerance.in_a_row:
            return
        if left > 0:
            raise ModelError(
                "gone",
                f"{self._failures} exchanges have failed in a row, and nothing is asked for "
                f"{left:.0f} s",
            )
        self._closed_until = self._clock() + self._tolerance.rest

    def _note(self, request: Request, error: ModelError) -> None:
        if error.kind in FOR_GOOD:
            self._refused[""] = error
        elif error.kind == "model":
            self._refused[request.model] = error
        elif error.transient:
            self._failures += 1
            self._closed_until = self._clock() + self._tolerance.rest
