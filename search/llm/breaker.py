"""A circuit breaker: stops requests to an endpoint that refuses permanently or fails repeatedly."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from search.llm.client import Client
from search.llm.exchange import Answer, ModelError, Request

FOR_GOOD = ("key", "quota", "protocol")  # for all requests; `model` is permanent for one model


@dataclass(frozen=True, slots=True)
class BreakerLimits:
    """When a client pauses its requests to an endpoint. Times are in seconds."""

    in_a_row: int = 3  # consecutive failures before a pause
    rest: float = 300.0  # longest pause
    # First pause; each further one is twice as long. None: all are `rest`.
    first: float | None = None
    span: float = 0.0  # least time span of the failures, so that a restarting server is awaited
    patience: float = 30.0  # it pauses at once if the endpoint asks for a longer wait


class Breaker:
    """A client that makes no useless requests; see `client.Client`.

    After a permanent refusal it raises the same error again. After a number of consecutive failures
    it pauses, and then tries one request; never before the endpoint's own `Retry-After`.
    """

    def __init__(
        self,
        client: Client,
        tolerance: BreakerLimits = BreakerLimits(),
        clock: Callable[[], float] = time.monotonic,
        rng: random.Random | None = None,
    ):
        """rng: shortens each pause by up to a quarter; None: not shortened."""
        self._client = client
        self._tolerance = tolerance
        self._clock = clock
        self._rng = rng
        self._lock = threading.Lock()
        self._refused: dict[str, ModelError] = {}
        self._failures = 0
        self._since = 0.0  # start of the first failed request
        self._last: ModelError | None = None  # None while requests are allowed
        self._rests = 0
        self._trying = False  # whether one request is in flight after a pause
        self._closed_until = 0.0

    @property
    def left(self) -> float:
        """Seconds left of the pause."""
        with self._lock:
            return max(0.0, self._closed_until - self._clock()) if self._last else 0.0

    def complete(self, request: Request) -> Answer:
        """The client's answer. Raises ModelError at once during a pause or after a permanent
        refusal."""
        with self._lock:
            self._refuse(request)
            began = self._clock()
        try:
            answer = self._client.complete(request)
        except ModelError as error:
            with self._lock:
                self._note(request, error, began)
            raise
        with self._lock:
            self._failures, self._rests, self._last, self._trying = 0, 0, None, False
        return answer

    def _refuse(self, request: Request) -> None:
        earlier = self._refused.get("") or self._refused.get(request.model)
        if earlier is not None:
            raise earlier.costing(0, 0, 0.0)
        if self._last is None:
            return
        left = self._closed_until - self._clock()
        if left > 0:
            raise ModelError(
                "gone",
                f"the endpoint is left alone for {left:.0f} s after {self._failures} failures in "
                f"a row; the last: {self._last.what}",
                where=self._last.where,
            )
        self._trying = True
        self._closed_until = self._clock() + self._rest()

    def _note(self, request: Request, error: ModelError, began: float) -> None:
        if error.kind in FOR_GOOD:
            self._refused[""] = error
        elif error.kind == "model":
            self._refused[request.model] = error
        elif error.transient:
            self._fail(error, began)

    def _fail(self, error: ModelError, began: float) -> None:
        now, limit, asked = self._clock(), self._tolerance, error.retry_after or 0.0
        self._since = self._since if self._failures else began
        self._failures += 1
        lasts = self._failures >= limit.in_a_row and now - self._since >= limit.span
        if self._last is None and not lasts and asked <= limit.patience:
            return
        if self._last is None or self._trying:
            self._rests += self._trying
            self._closed_until = now + self._rest()
        self._closed_until = max(self._closed_until, now + asked)
        self._last, self._trying = error, False

    def _rest(self) -> float:
        """The seconds of a pause: doubling, and randomly a little shorter."""
        limit = self._tolerance
        first = limit.rest if limit.first is None else limit.first
        whole = min(limit.rest, first * 2**self._rests)
        return whole * self._rng.uniform(0.75, 1.0) if self._rng else whole
