"""Timing: how long one call keeps the device busy, the same for every kernel and baseline.

Between two device events stands one call. Before the first event the queue holds two things: a
wait as long as the host needs to issue the call, and a pass over a buffer larger than the
cache. While the device is busy with these the host issues the call, so the events measure
the device's time and not the host's, the inputs come from memory and not from the cache, and
what launching costs is hidden for everyone alike (it is reported on its own, as `host_us`).
Calls go around several independent sets of inputs. The result is a median over many runs.

Events can be fooled by work on a side stream, so a call is also clocked by the host between two
waits for the whole device: what that shows beyond the events and the host's own time must be
small (`clocks_agree`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Protocol

LEAST_RUNS = 30
MOST_RUNS = 400
WARM_UP = 5
SECONDS = 0.15  # of measured calls, about
WALL_RUNS = 5
AT_ONCE = 50  # runs issued before the device is waited for: its queue is finite
SLACK_US = 60.0  # what two waits for the device may add to a call on the host's clock
SLACK = 0.25  # and the share of the call itself

Call = Callable[..., Any]


class Device(Protocol):
    """What is timed on. All but `wait` and `now` go into the device's queue."""

    def flush(self) -> None:
        """Replaces what the cache holds."""

    def spin(self, us: float) -> None:
        """Keeps the device busy for about that long."""

    def mark(self) -> Any:
        """An event."""

    def us_between(self, first: Any, second: Any) -> float:
        """Microseconds between two events that have happened."""

    def wait(self) -> None:
        """Returns when all the device's queues are empty."""

    def now(self) -> float:
        """The host's clock in seconds."""


@dataclass(frozen=True, slots=True)
class Times:
    """Microseconds. us: the median; p20, p80: of the runs.  host_us: issuing one call.
    wall_us: one call on the host's clock, device idle before and after; the least of a few,
    as hidden work would be in all of them."""

    us: float
    p20: float
    p80: float
    runs: int
    host_us: float
    wall_us: float

    @property
    def clocks_agree(self) -> bool:
        """Whether the host's clock leaves no room for work that the events missed, nor the
        events for time that the host did not see."""
        most = (1 + SLACK) * (self.p80 + self.host_us) + SLACK_US
        return self.wall_us <= most and self.us <= 1.5 * self.wall_us + SLACK_US


def measure(
    call: Call, sets: Sequence[Sequence[Any]], device: Device, seconds: float = SECONDS
) -> Times:
    """Times `call(*inputs)` on sets of inputs in turn; see the module for how."""
    for n in range(max(WARM_UP, len(sets))):
        call(*sets[n % len(sets)])
    device.wait()
    host_us = _host_us(call, sets, device)
    first = _runs(call, sets, device, 5, host_us)
    runs = int(1e6 * seconds / max(median(first), 1e-3))
    runs = min(MOST_RUNS, max(LEAST_RUNS, runs))
    found = sorted(_runs(call, sets, device, runs, host_us))
    return Times(
        us=median(found),
        p20=found[int(0.2 * (runs - 1))],
        p80=found[int(0.8 * (runs - 1))],
        runs=runs,
        host_us=host_us,
        wall_us=_wall_us(call, sets, device),
    )


def _runs(
    call: Call, sets: Sequence[Sequence[Any]], device: Device, runs: int, host_us: float
) -> list[float]:
    """Microseconds of each of some calls, cold."""
    found = []
    while len(found) < runs:
        marks = []
        for n in range(min(AT_ONCE, runs - len(found))):
            device.spin(1.5 * host_us + 10)
            device.flush()
            start = device.mark()
            call(*sets[n % len(sets)])
            marks.append((start, device.mark()))
        device.wait()
        found += [device.us_between(start, end) for start, end in marks]
    return found


def _host_us(call: Call, sets: Sequence[Sequence[Any]], device: Device) -> float:
    """How long the host needs to issue one call; the median of a few."""
    found = []
    for n in range(WALL_RUNS):
        device.wait()
        before = device.now()
        call(*sets[n % len(sets)])
        found.append(1e6 * (device.now() - before))
    device.wait()
    return median(found)


def _wall_us(call: Call, sets: Sequence[Sequence[Any]], device: Device) -> float:
    found = []
    for n in range(WALL_RUNS):
        device.flush()
        device.wait()
        before = device.now()
        call(*sets[n % len(sets)])
        device.wait()
        found.append(1e6 * (device.now() - before))
    return min(found)
