"""For tests: an operator, and jobs on a clock that a test moves."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from typing import Any

from ir.edits.edits import neighbours
from search.core.candidate import Candidate
from search.loop.context import Context, GaveUp
from search.loop.jobs import Done


class Pick:
    """An operator that changes one decision at random."""

    name, parents, remote = "pick", 1, False

    def propose(self, context: Context, rng: random.Random) -> Candidate | GaveUp:
        """The first change of a random order that is new and lowers."""
        schedule = context.parents[0].schedule
        edits = neighbours(context.spec, schedule, context.machine, context.sizes)
        for edit in rng.sample(edits, len(edits)):
            child = context.offer(edit.apply(schedule), "pick", str(edit))
            if isinstance(child, Candidate):
                return child
        return GaveUp("nothing is left")


class Clock:
    """A clock that a test moves: `now` is in seconds."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Simulated:
    """Jobs on a test's clock. Each is run at once, and ends as much later as its work moved the clock.

    workers: evaluations that run at once.
    """

    def __init__(self, clock: Clock, workers: int = 1):
        self.clock = clock
        self._free = [0.0] * workers  # when each worker is
        self._ending: list[tuple[float, int, Done]] = []
        self._started = 0
        self._in_flight: set[str] = set()
        self.most_in_flight = 0

    def request(self, name: str, work: Callable[[], Any]) -> None:
        """A request, which takes its time beside all others."""
        self._in_flight.add(name)
        self.most_in_flight = max(self.most_in_flight, len(self._in_flight))
        self._run(name, work, self.clock.now)

    def evaluation(self, name: str, work: Callable[[], Any]) -> None:
        """An evaluation, by the worker that is free first."""
        first = heapq.heappop(self._free)
        heapq.heappush(self._free, self._run(name, work, max(first, self.clock.now)))

    def next(self) -> Done:
        """The job that ends first."""
        end, _, done = heapq.heappop(self._ending)
        self.clock.now = max(self.clock.now, end)
        self._in_flight.discard(done.name)
        return done

    def end(self) -> None:
        """Nothing is left to end: all was run."""

    def _run(self, name: str, work: Callable[[], Any], start: float) -> float:
        now, self.clock.now = self.clock.now, start
        try:
            done = Done(name, work())
        except Exception as error:
            done = Done(name, error=error)
        end, self.clock.now = self.clock.now, now
        self._started += 1
        heapq.heappush(self._ending, (end, self._started, done))
        return end
