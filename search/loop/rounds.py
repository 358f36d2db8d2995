"""Rounds of a job: which of its searches goes on next, and by how many evaluations.

First each search gets an opening round. After that the next round goes to the search with the highest
expected gain per cost, times its weight. A gain is a logarithm of times; how much a search lately
gained with each evaluation is expected to go on, but not beyond the roofline.

Of the kernels of a network a gain is the share of the network's time that it saves. Opening rounds
have one evaluation there, and those have none whose time in a call is measured already.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from search.loop.budget import FADING, MOST_GAIN

ROUND = 8  # evaluations of a round at least
GROWTH = 0.5  # of what a search has had, its next round; starting a round costs seconds
# What each search is credited with at the start: so many evaluations, each of which gained so much.
HOPED_EVALUATIONS, HOPED_GAIN = 8.0, 0.05


@dataclass(frozen=True, slots=True)
class Share:
    """What a search of a job may have."""

    weight: float = 1.0  # what a gain of it counts
    # Searches of a lower priority get nothing before those of a higher one are over.
    priority: int = 0
    # Limits of its own; None: none but the job's.
    evaluations: int | None = None
    seconds: float | None = None
    # The name of the network that the kernel is of, how often a call of that runs it, and the
    # microseconds that its seed schedule takes there, measured (`timed`) or by the estimate. Empty: it
    # is of none.
    network: str = ""
    calls: int = 1
    estimate_us: float = 0.0
    timed: bool = False


@dataclass(frozen=True, slots=True)
class JobBudget:
    """What all searches of a job may have together; None: no limit."""

    evaluations: int | None = None
    # Working time of the searches, and `Idle` time
    seconds: float | None = None
    round: int = ROUND  # evaluations of a round at least


@dataclass(frozen=True, slots=True)
class JobStanding:
    """How a search of a job stands."""

    share: Share
    # What became of its candidates in their order, in us; infinite where one failed.
    times: tuple[float, ...] = field(default=())
    seconds: float = 0.0  # working time
    roofline_us: float = 0.0
    over: bool = False  # nothing more comes of it

    @property
    def evaluations(self) -> int:
        """How many candidates it has tried."""
        return len(self.times)

    @property
    def best_us(self) -> float:
        """Its best time; infinite where nothing is correct."""
        return min(self.times, default=math.inf)

    @property
    def rate(self) -> float:
        """The gain that the next evaluation is expected to bring."""
        best, gain, cost = math.inf, HOPED_EVALUATIONS * HOPED_GAIN, HOPED_EVALUATIONS
        for us in self.times:
            gained = math.log(best / us) if us < best < math.inf else 0.0
            gain = gain * FADING + min(MOST_GAIN, gained)
            cost = cost * FADING + 1.0
            best = min(best, us)
        return gain / cost

    @property
    def left(self) -> int | None:
        """Evaluations that its own limit leaves; None where there is none."""
        most = self.share.evaluations
        return None if most is None else max(0, most - self.evaluations)

    @property
    def open(self) -> bool:
        """Whether it may go on."""
        late = self.share.seconds is not None and self.seconds >= self.share.seconds
        return not self.over and not late and self.left != 0

    def gain(self, evaluations: int, us: float) -> float:
        """What so many evaluations are expected to gain: at most what is left to the roofline. us: its
        best time; infinite where nothing is known."""
        expected = evaluations * self.rate
        if math.isinf(us):
            return expected
        return min(expected, max(0.0, math.log(us / self.roofline_us)))


@dataclass(frozen=True, slots=True)
class Round:
    """The next round of a job."""

    search: int  # its number in the job, from 0
    evaluations: int  # of it
    gain: float  # that is expected of it, weighted; of a network, the share of its time
    cost: float  # that is expected: evaluations, or seconds where the job has a budget of seconds


class Idle:
    """Seconds of a job in which none of its searches worked: their workers began and ended. Whoever gives a job
    seconds waits for these, too. Those of its first round come before it, and do not count."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self.seconds = 0.0
        self._clock = clock
        self._begun = False

    @contextmanager
    def of_round(self, worked: Callable[[], float]) -> Iterator[None]:
        """A round is within it. worked: the seconds that all searches have worked so far."""
        first, before, began = not self._begun, worked(), self._clock()
        self._begun = True
        yield
        took = self._clock() - began - (worked() - before)
        if not first:
            self.seconds += max(0.0, took)

    def left(self, budget: JobBudget) -> JobBudget:
        """A budget without these."""
        if budget.seconds is None:
            return budget
        return replace(budget, seconds=budget.seconds - self.seconds)


def spent(standings: Sequence[JobStanding]) -> tuple[int, float]:
    """The evaluations and seconds that all searches have taken."""
    return sum(s.evaluations for s in standings), sum(s.seconds for s in standings)


def next_round(standings: Sequence[JobStanding], budget: JobBudget) -> Round | None:
    """Who goes on; None where the budget is used up or no search may go on. The same standings
    give the same."""
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
    """Which search is opened next: the first, but of those for a network the one that takes most of a
    call."""
    network = standings[new[0]].share.network
    if not network:
        return new[0]
    alike = [n for n in new if standings[n].share.network == network]
    return max(alike, key=lambda n: (standings[n].share.calls * standings[n].share.estimate_us, -n))


def _times(standings: Sequence[JobStanding]) -> list[float]:
    """Of each search its best time, or where it has none that of its seed schedule in a call; infinite
    where nothing is known."""
    return [
        s.best_us if s.best_us < math.inf else s.share.estimate_us or math.inf for s in standings
    ]


def shares(standings: Sequence[JobStanding]) -> list[float]:
    """The part of the time of a call of its network that each search's kernel takes; 0 for one of whose
    time nothing is known."""
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
    """The round that a search would get. times: of `_times`."""
    standing = standings[number]
    size = max(budget.round, int(GROWTH * standing.evaluations))
    if standing.share.network and not standing.evaluations and not standing.share.timed:
        size = 1
    elif not standing.evaluations and budget.evaluations is not None:
        # A small budget opens all searches.
        size = max(1, min(size, budget.evaluations // len(standings)))
    size = min(n for n in (size, left, standing.left) if n is not None)
    cost = float(size) if budget.seconds is None else size * _seconds_each(standing, standings)
    gain = standing.gain(size, times[number])
    if standing.share.network and times[number] < math.inf:
        gain = shares(standings)[number] * (1.0 - math.exp(-gain))
    return Round(number, size, standing.share.weight * gain, cost)


def _seconds_each(standing: JobStanding, standings: Sequence[JobStanding]) -> float:
    """What an evaluation of a search takes, or where it had none, one of any search."""
    for known in ([standing], standings):
        evaluations, seconds = spent(known)
        if evaluations and seconds > 0.0:
            return seconds / evaluations
    return 1.0
