"""Times of calls: warm-up, repetitions, the median, and the variation.

A call may run in another process, whose clock then measures it: the repeated function returns its
seconds.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from backends.backend import MachineFault

WARM = 3  # calls before the first measured one
SECONDS = 0.25  # seconds of measured calls
FEWEST, MOST = 7, 400
MOST_OVER = 1.25  # largest ratio of this process's time to the other's
ASKING = 250e-6  # additional seconds for the request to the other process
SHORTEST = 20e-6  # least seconds of a reading; shorter calls are repeated within it


def at_once(taken: Callable[[], float]) -> int:
    """The number of calls in a reading that is long enough. taken: makes one call and returns its
    seconds."""
    for _ in range(WARM):
        once = taken()
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
        """The number of readings, and their interquartile range over the median."""
        low, _, high = statistics.quantiles(self.readings, n=4)
        return {"readings": float(len(self.readings)), "spread": (high - low) / self.us}


class TwoClocks:
    """Compares another process's times with the time that passes here."""

    def __init__(self, asked: Callable[..., float]):
        """asked: requests calls; returns their seconds by the clock of their process."""
        self._asked = asked
        self._there: list[float] = []
        self._here: list[float] = []

    def seconds(self, *calls: object) -> float:
        """The same as `asked`."""
        began = time.perf_counter()
        self._there.append(self._asked(*calls))
        self._here.append(time.perf_counter() - began)
        return self._there[-1]

    def require_alike(self) -> None:
        """Raises MachineFault if even in the fastest case more time passed here than the other
        process reports. A busy machine can be the cause."""
        there, here = statistics.median(self._there), min(self._here)
        if here > MOST_OVER * there + ASKING:
            raise MachineFault(
                "time",
                f"clocks disagree: {1e6 * there:.4g} us by the clock of the kernel's process, at least "
                f"{1e6 * here:.4g} us by the judge's",
            )


def measured(call: Callable[[], None], seconds: float = SECONDS) -> Times:
    """The times of a call with warm caches."""

    def taken(count: int = 1) -> float:
        began = time.perf_counter()
        for _ in range(count):
            call()
        return time.perf_counter() - began

    count = at_once(taken)
    return readings(partial(taken, count), count, seconds)


def readings(
    taken: Callable[[], float],
    count: int,
    seconds: float = SECONDS,
    before: Callable[[], None] = lambda: None,
) -> Times:
    """The times of one call, of `count` that are made together.

    taken: makes them; returns the seconds of all. before: called before each reading, and not
    timed.
    """
    found: list[float] = []
    until = time.perf_counter() + seconds
    while len(found) < FEWEST or len(found) < MOST and time.perf_counter() < until:
        before()
        found.append(1e6 * taken() / count)
    return Times(tuple(found))
