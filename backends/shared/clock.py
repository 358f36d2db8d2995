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
    for _ in range(WARM):
        began = time.perf_counter()
        call()
        once = time.perf_counter() - began
    together = max(1, round(SHORTEST / max(once, 1e-9)))
    found: list[float] = []
    until = time.perf_counter() + seconds
    while len(found) < FEWEST or len(found) < MOST and time.perf_counter() < until:
        began = time.perf_counter()
        for _ in range(together):
            call()
        found.append(1e6 * (time.perf_counter() - began) / together)
    return Times(tuple(found))
