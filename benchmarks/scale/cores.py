"""The cores of a node, which share what is to be computed as an operating system's scheduler does."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import count

import simpy


class Cores:
    """Cores that processes compute on, one each at most.

    Urgent work has a core of its own, as what mostly waits has one where it wakes up; the other
    processes have equal parts of the rest. speeds: of a core when so many are busy, from one on, beside that of
    one alone; the last holds for more.
    """

    def __init__(self, env: simpy.Environment, number: int, speeds: Sequence[float] = (1.0,)):
        self.number = number
        self.worked = 0.0  # seconds of a core alone, done so far
        self._env, self._speeds = env, speeds
        self._at = env.now  # when `_done` and `worked` were right
        # Of two sorts, usual and urgent: what each process has been given since the beginning, and
        # the processes by how much they wait for, as (amount, number, event).
        self._done = [0.0, 0.0]
        self._waiting: list[list[tuple[float, int, simpy.Event]]] = [[], []]
        self._numbers = count()
        self._version = 0

    def work(self, seconds: float, urgent: bool = False) -> simpy.Event:
        """Is triggered when a core has worked so long on it. seconds: of a core alone."""
        self._catch_up()
        event = self._env.event()
        sort = int(urgent)
        entry = (self._done[sort] + seconds, next(self._numbers), event)
        heapq.heappush(self._waiting[sort], entry)
        self._plan()
        return event

    def _rates(self) -> tuple[float, float]:
        """Seconds of work that a usual and an urgent process are given in a second."""
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
        """Comes back when the next process has what it waits for, unless something changes before."""
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
            # Those that end together, but for rounding, end now.
            while waiting and waiting[0][0] <= self._done[sort] + 1e-9:
                heapq.heappop(waiting)[2].succeed()
        self._plan()
