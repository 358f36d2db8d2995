"""Patience: repeats requests after temporary faults."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from search.llm.client import Client
from search.llm.exchange import Answer, ModelError, Request, after


@dataclass(frozen=True, slots=True)
class Patience:
    """The repetition of failed requests. Waits are in seconds and double."""

    attempts: int = 5  # largest number of attempts
    first: float = 1.0  # wait before the second attempt
    most: float = 60.0  # longest wait before any attempt
    longest: float = 30.0  # if an endpoint asks for a longer wait, the request is not repeated


class Patient:
    """A client that repeats requests after temporary faults; see `client.Client`.

    Waits are random between half and all of an exponentially growing time, and never shorter than
    the endpoint asks. After a rate limit all threads wait. The tokens and cost of failed attempts
    are part of the reply.
    """

    def __init__(
        self,
        client: Client,
        patience: Patience,
        rng: random.Random,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        say: Callable[[str], None] = lambda text: None,
    ):
        self._client = client
        self._patience = patience
        self._rng = rng
        self._clock = clock
        self._sleep = sleep
        self._say = say
        self._lock = threading.Lock()
        self._quiet_until = 0.0

    def complete(self, request: Request) -> Answer:
        """The client's answer. Raises ModelError if all attempts failed."""
        failed: list[ModelError] = []
        while True:
            self._wait_for_quiet()
            try:
                return after(self._client.complete(request), failed)
            except ModelError as error:
                if failed and error.kind == "gone":  # the earlier error says more
                    raise _all_of(failed) from None
                failed.append(error)
            self._wait_or_raise(failed)

    def _wait_or_raise(self, failed: list[ModelError]) -> None:
        error, count = failed[-1], len(failed)
        asked = error.retry_after or 0.0
        if not error.transient or count >= self._patience.attempts:
            raise _all_of(failed)
        if asked > self._patience.longest:
            error.hint = f"it asks to wait {asked:.0f} s; try again later"
            raise _all_of(failed)
        seconds = max(asked, self._drawn(count))
        if error.kind == "limit":
            with self._lock:
                self._quiet_until = max(self._quiet_until, self._clock() + seconds)
        self._say(f"{error.what}; attempt {count + 1} in {seconds:.1f} s")
        self._sleep(seconds)

    def _drawn(self, failures: int) -> float:
        whole = min(self._patience.most, self._patience.first * 2 ** (failures - 1))
        with self._lock:
            return whole * self._rng.uniform(0.5, 1.0)

    def _wait_for_quiet(self) -> None:
        with self._lock:
            seconds = self._quiet_until - self._clock()
        if seconds > 0:
            self._sleep(seconds)


def _all_of(failed: list[ModelError]) -> ModelError:
    """The last error, with the cost of all attempts."""
    last = after(failed[-1], failed[:-1])
    if len(failed) > 1:
        last.what += f" ({len(failed)} attempts)"
    return last
