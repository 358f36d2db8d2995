"""The time that is left for models: a search has an end, and nothing is waited for beyond it."""

from __future__ import annotations

import time
from collections.abc import Callable

from search.llm.exchange import ModelError

OVER = "the time of the search is over"


class TimeLeft:
    """How long may still be waited; as long as it takes where nobody says."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._end: float | None = None

    def set(self, seconds: float | None) -> None:
        """From now on."""
        self._end = None if seconds is None else self._clock() + seconds

    def of(self, seconds: float) -> float:
        """So many seconds, or those that are left; ModelError where none are."""
        if self._end is None:
            return seconds
        left = self._end - self._clock()
        if left <= 0:
            raise ModelError("gone", OVER)
        return min(seconds, left)
