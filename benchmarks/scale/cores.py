"""The cores of a node. They share work as an operating system's scheduler does."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import count

import simpy


class Cores:
    """Cores that processes compute on, at most one each.

    Urgent work gets a core of its own, because a process that mostly waits gets one when it wakes
    up. The other processes share the rest equally.

    speeds: of a core when so many are busy, from one on, relative to that of one alone. The last
    value holds for more.
    """

    def __init__(self, env: simpy.Environment, number: int, speeds: Sequence[float] = (1.0,)):
        self.number = number
        self.worked = 0.0  # Core seconds of work done so far.
        self._env, self._speeds = env, speeds
        self._at = env.now  # The time at which `_done` and `worked` were updated.
        # For two kinds, usual and urgent: the work given to each process since the start, and the
        # processes sorted by what they wait for, as (amount, number, event).
        self._done = [0.0, 0.0]
        self._waiting: list[list[tuple[float, int, simpy.Event]]] = [[], []]
        self._numbers = count()
        self._version = 0

    def work(self, seconds: float, urgent: bool = False) -> simpy.Event:
        """Returns an event that triggers when a core has worked so long on it. seconds: of a core
        alone."""
        self._catch_up()
        event = self._env.event()
        sort = int(urgent)
        entry = (self._done[sort] + seconds, next(self._numbers), event)
        heapq.heappush(self._waiting[sort], entry)
        self._plan()
        return event

    def _rates(self) -> tuple[float, float]:
        """Returns the work per second that a usual and an urgent process receive."""
        usual, urgent = map(len, self._waiting)
        busy = min(self.number, usual + urgent)
        speed = self._speeds[min(busy, len(self._speeds)) - 1] if busy else 1.0
        first = min(1.0, self.number / urgent) if urgent else 0.0
        left = max(0.0, self.number - urgent)
        return speed * (min(1.0, left / usual) if usual else 0.0), speed * first

    def _catch_up(self) -> None:
        passed, self._at = self._env.now - self._at, self._env.now
        for sort, rate in enumerate(self._rates()):
            self._done[sort] += passed * rate
            self.worked += passed * rate * len(self._waiting[sort])

    def _plan(self) -> None:
        """Schedules the completion of the next process, unless something changes before."""
        self._version += 1
        rates = self._rates()
        delays = [
            max(0.0, waiting[0][0] - self._done[sort]) / rates[sort]
            for sort, waiting in enumerate(self._waiting)
            if waiting and rates[sort]
        ]
        if not delays:
            return
        version, timer = self._version, self._env.timeout(min(delays))
        timer.callbacks.append(lambda _: self._finish(version))

    def _finish(self, version: int) -> None:
        if version != self._version:
            return
        self._catch_up()
        for sort, waiting in enumerate(self._waiting):
            # Processes that end together, up to rounding, end now.
            while waiting and waiting[0][0] <= self._done[sort] + 1e-9:
                heapq.heappop(waiting)[2].succeed()
        self._plan()
