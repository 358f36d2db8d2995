"""The time limit for models: no request waits beyond the end of the search."""

from __future__ import annotations

import time
from collections.abc import Callable

from search.llm.exchange import ModelError

OVER = "the time of the search is over"


class TimeLeft:
    """The time that is left for waits; unlimited by default."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._end: float | None = None

    def set(self, seconds: float | None) -> None:
        """Sets the time from now until the end; None: no limit."""
        self._end = None if seconds is None else self._clock() + seconds

    def of(self, seconds: float) -> float:
        """`seconds`, or the time that is left if that is less. Raises ModelError if none is
        left."""
        if self._end is None:
            return seconds
        left = self._end - self._clock()
        if left <= 0:
            raise ModelError("gone", OVER)
        return min(seconds, left)
