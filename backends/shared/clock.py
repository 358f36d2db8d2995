"""Times of calls: warm-up, enough repetitions, the median, and how much they vary.

A call may be made in another process, whose clock it is then: what is repeated here returns its seconds.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from backends.backend import MachineFault

WARM = 3  # calls before the first that counts
SECONDS = 0.25  # of calls that count
FEWEST, MOST = 7, 400
MOST_OVER = 1.25  # of the time by another process's clock that may pass by this one's
ASKING = 250e-6  # seconds that may pass beside that, in which the other process is asked
SHORTEST = 20e-6  # seconds that one reading takes at least: several calls where one is shorter


def at_once(taken: Callable[[], float]) -> int:
    """How many calls a reading needs to be long enough. taken: makes one call; its seconds."""
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
        """How many readings there are, and between what their middle half lies, over the median."""
        low, _, high = statistics.quantiles(self.readings, n=4)
        return {"readings": float(len(self.readings)), "spread": (high - low) / self.us}


class TwoClocks:
    """What another process says its calls take, beside what passes here."""

    def __init__(self, asked: Callable[..., float]):
        """asked: has calls made; the seconds that they took by the clock of their process."""
        self._asked = asked
        self._there: list[float] = []
        self._here: list[float] = []

    def seconds(self, *calls: object) -> float:
        """As `asked`."""
        began = time.perf_counter()
        self._there.append(self._asked(*calls))
        self._here.append(time.perf_counter() - began)
        return self._there[-1]

    def require_alike(self) -> None:
        """MachineFault where even in the fastest case more passed here than the other process says.
        It may be the machine that was busy."""
        there, here = statistics.median(self._there), min(self._here)
        if here > MOST_OVER * there + ASKING:
            raise MachineFault(
                "time",
                f"clocks disagree: {1e6 * there:.4g} us by the clock of the kernel's process, at least "
                f"{1e6 * here:.4g} us by the judge's",
            )


def measured(call: Callable[[], None], seconds: float = SECONDS) -> Times:
    """The times of a call; what it needs is in caches as far as it fits."""

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
    """The times of one call of `count` that are made together.

    taken: makes them; the seconds that they took together. before: comes before each reading, and is no
    part of it.
    """
    found: list[float] = []
    until = time.perf_counter() + seconds
    while len(found) < FEWEST or len(found) < MOST and time.perf_counter() < until:
        before()
        found.append(1e6 * taken() / count)
    return Times(tuple(found))
