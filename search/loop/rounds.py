"""Rounds of a job: chooses the search that continues next, and its number of evaluations.

First each search gets an opening round. After that the next round goes to the search with the
highest expected gain per cost, times its weight. A gain is a difference of logarithms of times. A
search is expected to keep its recent gain per evaluation, but not to go beyond the roofline.

For the kernels of a network, a gain is the share of the network's time that it saves. Their opening
rounds have one evaluation, and kernels whose time in a call is already measured have none.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from search.loop.budget import FADING, MOST_GAIN

ROUND = 8  # least number of evaluations of a round
# size of the next round relative to all evaluations so far; starting a round costs seconds
GROWTH = 0.5
# The initial credit of each search: this many evaluations with this gain each.
HOPED_EVALUATIONS, HOPED_GAIN = 8.0, 0.05


@dataclass(frozen=True, slots=True)
class Share:
    """The share of a job that a search may use."""

    weight: float = 1.0  # factor on its gain
    # Searches of a lower priority wait until those of a higher one are over.
    priority: int = 0
    # Its own limits; None: only the job's.
    evaluations: int | None = None
    seconds: float | None = None
    # The network of the kernel (empty: none), the number of its runs in one call, and the
    # microseconds of its seed schedule there: measured if `timed`, else estimated.
    network: str = ""
    calls: int = 1
    estimate_us: float = 0.0
    timed: bool = False


@dataclass(frozen=True, slots=True)
class JobBudget:
    """The limits of all searches of a job together; None: no limit."""

    evaluations: int | None = None
    # Working time of the searches, plus `Idle` time.
    seconds: float | None = None
    round: int = ROUND  # least number of evaluations of a round


@dataclass(frozen=True, slots=True)
class JobStanding:
    """The progress of one search of a job."""

    share: Share
    # The time of each candidate in order, in microseconds; infinite if it failed.
    times: tuple[float, ...] = field(default=())
    seconds: float = 0.0  # working time
    roofline_us: float = 0.0
    over: bool = False  # it cannot find more

    @property
    def evaluations(self) -> int:
        """The number of evaluated candidates."""
        return len(self.times)

    @property
    def best_us(self) -> float:
        """Its best time; infinite if none is correct."""
        return min(self.times, default=math.inf)

    @property
    def rate(self) -> float:
        """The expected gain of the next evaluation."""
        best, gain, cost = math.inf, HOPED_EVALUATIONS * HOPED_GAIN, HOPED_EVALUATIONS
        for us in self.times:
            gained = math.log(best / us) if us < best < math.inf else 0.0
            gain = gain * FADING + min(MOST_GAIN, gained)
            cost = cost * FADING + 1.0
            best = min(best, us)
        return gain / cost

    @property
    def left(self) -> int | None:
        """Evaluations that its own limit leaves; None without a limit."""
        most = self.share.evaluations
        return None if most is None else max(0, most - self.evaluations)

    @property
    def open(self) -> bool:
        """Whether it may continue."""
        late = self.share.seconds is not None and self.seconds >= self.share.seconds
        return not self.over and not late and self.left != 0

    def gain(self, evaluations: int, us: float) -> float:
        """The expected gain of some evaluations, at most up to the roofline. us: its best time;
        infinite if unknown."""
        expected = evaluations * self.rate
        if math.isinf(us):
            return expected
        return min(expected, max(0.0, math.log(us / self.roofline_us)))


@dataclass(frozen=True, slots=True)
class Round:
    """The next round of a job."""

    search: int  # number of the search in the job, from 0
    evaluations: int  # of this round
    gain: float  # expected and weighted; for a network, the saved share of its time
    cost: float  # expected: evaluations, or seconds if the job has a budget of seconds


class Idle:
    """Idle time of a job: seconds in which no search works because workers start and stop.

    The user waits for this time too, so it counts against a budget of seconds. The start before the
    first round does not count.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self.seconds = 0.0
        self._clock = clock
        self._begun = False

    @contextmanager
    def of_round(self, worked: Callable[[], float]) -> Iterator[None]:
        """Measures the idle time around one round. worked: returns the seconds that all searches
        have worked so far."""
        first, before, began = not self._begun, worked(), self._clock()
        self._begun = True
        yield
        took = self._clock() - began - (worked() - before)
        if not first:
            self.seconds += max(0.0, took)

    def left(self, budget: JobBudget) -> JobBudget:
        """The budget without the idle time."""
        if budget.seconds is None:
            return budget
        return replace(budget, seconds=budget.seconds - self.seconds)


def spent(standings: Sequence[JobStanding]) -> tuple[int, float]:
    """The evaluations and seconds of all searches together."""
    return sum(s.evaluations for s in standings), sum(s.seconds for s in standings)


def next_round(standings: Sequence[JobStanding], budget: JobBudget) -> Round | None:
    """The next round; None if the budget is used up or no search may continue. It depends only on
    the arguments."""
    evaluations, seconds = spent(standings)
    if budget.seconds is not None and seconds >= budget.seconds:
        return None
    left = None if budget.evaluations is None else budget.evaluations - evaluations
    able = [n for n, s in enumerate(standings) if s.open]
    if not able or (left is not None and left <= 0):
        return None
    first = max(standings[n].share.priority for n in able)
    able = [n for n in able if standings[n].share.priority == first]
    new = [n for n in able if not standings[n].evaluations and not standings[n].share.timed]
    times = _times(standings)
    if new:
        return _round(_opened_next(new, standings), standings, times, budget, left)
    rounds = [_round(n, standings, times, budget, left) for n in able]
    found = max(rounds, key=lambda r: (r.gain / r.cost, -r.search))
    of_network = standings[found.search].share.network
    return None if of_network and found.gain <= 0.0 else found


def _opened_next(new: Sequence[int], standings: Sequence[JobStanding]) -> int:
    """The search to open next: the first; among those of a network, the one with the most time in a
    call."""
    network = standings[new[0]].share.network
    if not network:
        return new[0]
    alike = [n for n in new if standings[n].share.network == network]
    return max(alike, key=lambda n: (standings[n].share.calls * standings[n].share.estimate_us, -n))


def _times(standings: Sequence[JobStanding]) -> list[float]:
    """The best time of each search, or the time of its seed schedule in a call; infinite if
    unknown."""
    return [
        s.best_us if s.best_us < math.inf else s.share.estimate_us or math.inf for s in standings
    ]


def shares(standings: Sequence[JobStanding]) -> list[float]:
    """Each kernel's share of the time of a call of its network; 0 if its time is unknown."""
    whole: dict[str, float] = {}
    times = []
    for s, us in zip(standings, _times(standings), strict=True):
        times.append(s.share.calls * us if us < math.inf else 0.0)
        whole[s.share.network] = whole.get(s.share.network, 0.0) + times[-1]
    return [
        us / whole[s.share.network] if us else 0.0 for s, us in zip(standings, times, strict=True)
    ]


def _round(
    number: int,
    standings: Sequence[JobStanding],
    times: Sequence[float],
    budget: JobBudget,
    left: int | None,
) -> Round:
    """The round that a search would get. times: the result of `_times`."""
    standing = standings[number]
    size = max(budget.round, int(GROWTH * standing.evaluations))
    if standing.share.network and not standing.evaluations and not standing.share.timed:
        size = 1
    elif not standing.evaluations and budget.evaluations is not None:
        # With a small budget, opening rounds are short enough for all searches.
        size = max(1, min(size, budget.evaluations // len(standings)))
    size = min(n for n in (size, left, standing.left) if n is not None)
    cost = float(size) if budget.seconds is None else size * _seconds_each(standing, standings)
    gain = standing.gain(size, times[number])
    if standing.share.network and times[number] < math.inf:
        gain = shares(standings)[number] * (1.0 - math.exp(-gain))
    return Round(number, size, standing.share.weight * gain, cost)


def _seconds_each(standing: JobStanding, standings: Sequence[JobStanding]) -> float:
    """Seconds per evaluation of a search; without evaluations, the mean of all searches."""
    for known in ([standing], standings):
        evaluations, seconds = spent(known)
        if evaluations and seconds > 0.0:
            return seconds / evaluations
    return 1.0
