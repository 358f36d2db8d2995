"""A device for tests: all times are known, in microseconds."""

from __future__ import annotations


class Fake:
    """A device with one queue and the host's clock.

    host_us: what a call takes on the host.  late: work that no event sees.  flushed_us: what it
    takes to empty the cache.
    """

    def __init__(self, host_us: float = 20.0, late: float = 0.0, flushed_us: float = 500.0):
        self.host, self.queue = 0.0, 0.0  # what the time is, until when the device is busy
        self.host_us, self.late, self.flushed_us = host_us, late, flushed_us
        self.hidden = 0.0
        self.cold = False
        self.seen: list[float] = []

    def _enqueue(self, us: float) -> None:
        self.queue = max(self.queue, self.host) + us

    def flush(self) -> None:
        self._enqueue(self.flushed_us)
        self.cold = True

    def spin(self, us: float) -> None:
        self._enqueue(us)

    def mark(self) -> float:
        return max(self.queue, self.host)

    def us_between(self, first: float, second: float) -> float:
        return second - first

    def wait(self) -> None:
        self.host = max(self.host, self.queue, self.hidden)

    def now(self) -> float:
        return 1e-6 * self.host

    def call(self, us: float) -> None:
        """A kernel: four times as fast where its data is in the cache."""
        self.host += self.host_us
        self._enqueue(us if self.cold else us / 4)
        self.hidden = max(self.hidden, self.host) + self.late
        self.cold = False
        self.seen.append(us)
