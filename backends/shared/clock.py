"""Wall-clock times of calls: warm-up, enough repetitions, the median, and how much they vary."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

WARM = 3  # calls before the first that counts
SECONDS = 0.25  # of calls that count
FEWEST, MOST = 7, 400
SHORTEST = 20e-6  # seconds that one reading takes at least: several calls where one is shorter


def at_once(call: Callable[[], None]) -> int:
    """How many calls a reading needs to be long enough."""
    for _ in range(WARM):
        began = time.perf_counter()
        call()
        once = time.perf_counter() - began
    return max(1, round(SHORTEST / max(once, 1e-9)))


@dataclass(frozen=True, slots=True)
class Times:
    """Readings of a call, in microseconds."""

    readings: tuple[float, ...]

    @property
    def us(self) -> float:
        """The median."""
        return statistics.median(self.readings)

    def figures(self) -> dict[str, float]:
        """How many readings there are, and between what their middle half lies, over the median."""
        low, _, high = statistics.quantiles(self.readings, n=4)
        return {"readings": float(len(self.readings)), "spread": (high - low) / self.us}


def measured(call: Callable[[], None], seconds: float = SECONDS) -> Times:
    """The times of a call; what it needs is in caches as far as it fits."""
    count = at_once(call)

    def together() -> None:
        for _ in range(count):
            call()

    return readings(together, count, seconds)


def readings(
    together: Callable[[], None],
    count: int,
    seconds: float = SECONDS,
    before: Callable[[], None] = lambda: None,
) -> Times:
    """The times of one call of `count` that are made together.

    before: comes before each reading, and is no part of it.
    """
    found: list[float] = []
    until = time.perf_counter() + seconds
    while len(found) < FEWEST or len(found) < MOST and time.perf_counter() < until:
        before()
        began = time.perf_counter()
        together()
        found.append(1e6 * (time.perf_counter() - began) / count)
    return Times(tuple(found))
