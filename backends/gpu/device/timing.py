"""Cold-cache timing: how long a call keeps a device busy with none of its data in the cache.

Before the first event of a call, the device's queue gets a wait that lasts as long as the host
needs to issue the call, and a pass over a buffer larger than the cache. So events only span the
device's work, and data comes from memory. Calls rotate between several sets of tensors. The outputs
of a call are cleared before it, so that a kernel gains nothing from earlier results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, Protocol

from backends.backend import BackendError

WARM_UP = 3
FIRST_RUNS = 5
LEAST_RUNS = 20
MOST_RUNS = 400
MUCH = 1.5  # multiple of `enough_us` within which the first runs of a glance have to be
FIRST_GLANCES, GLANCES = 3, 10  # runs of a glance; the first ones run at the device's current clock
AT_ONCE = 50  # runs between synchronisations: the device's queue is finite
WALL_RUNS = 5
TRIES = 3  # attempts until the two clocks agree
SLACK_US = 60.0  # what two synchronisations may add to the host's clock
SLACK = 0.25  # the same as a share of the call

TimedCall = Callable[[Any], Any]


class Device(Protocol):
    """A device to time on. All methods but `wait` and `now` enqueue work."""

    def flush(self) -> None:
        """Replaces the contents of the cache."""

    def spin(self, us: float) -> None:
        """Keeps the device busy for about `us` microseconds."""

    def mark(self) -> Any:
        """Records an event."""

    def us_between(self, first: Any, second: Any) -> float:
        """Microseconds between two completed events."""

    def wait(self) -> None:
        """Waits until all queues of the device are empty."""

    def now(self) -> float:
        """The host's clock, in seconds."""


@dataclass(frozen=True, slots=True)
class Times:
    """The result of a measurement; all times in microseconds."""

    us: float  # median of the runs
    least: float  # minimum
    p20: float  # 20th percentile
    p80: float  # 80th percentile
    runs: int
    host_us: float  # host time of issuing one call
    wall_us: float  # one call by the host's clock, with the device idle before and after

    def agree(self) -> bool:
        """Whether the host's clock shows no more than the events and the issue of a call."""
        return self.wall_us <= (1 + SLACK) * (self.p80 + self.host_us) + SLACK_US

    def figures(self) -> dict[str, float]:
        """The figures that a timing reports besides the median."""
        return {
            "us_least": self.least,
            "us_p20": self.p20,
            "us_p80": self.p80,
            "runs": float(self.runs),
            "host_us": self.host_us,
            "wall_us": self.wall_us,
        }


def measure(
    call: TimedCall,
    sets: Sequence[Any],
    device: Device,
    seconds: float,
    clear: TimedCall = lambda tensors: None,
    most: int = MOST_RUNS,
) -> Times:
    """Times `call` on alternating sets of tensors, for about `seconds` of device time. Afterwards
    each set holds the results of a timed call.

    clear: enqueues work before each timed call on a set, which is not timed.
    most: the most runs.

    Raises BackendError("time") where in each attempt the host's clock shows work that the events do
    not span, such as a kernel that continues in a queue of its own.
    """
    for n in range(max(WARM_UP, len(sets))):
        call(sets[n % len(sets)])
    device.wait()
    host_us = host_time(call, sets, device)
    wall_us = median(wall_times(call, sets, device))
    first = cold_runs(call, sets, device, FIRST_RUNS, host_us, clear)
    runs = int(1e6 * seconds / max(median(first), 1.0))
    runs = min(most, max(LEAST_RUNS, runs))
    found = sorted(cold_runs(call, sets, device, runs, host_us, clear))
    times = Times(
        us=median(found),
        least=found[0],
        p20=found[int(0.2 * (runs - 1))],
        p80=found[int(0.8 * (runs - 1))],
        runs=runs,
        host_us=host_us,
        wall_us=wall_us,
    )
    for _ in range(TRIES - 1):  # a busy host shows the same once, work of another queue always
        if times.agree():
            break
        wall_us = median(wall_times(call, sets, device))
        times = replace(times, host_us=host_time(call, sets, device), wall_us=wall_us)
    _require_agreement(times)
    return times


def glance(
    call: TimedCall,
    tensors: Any,
    device: Device,
    enough_us: float,
    clear: TimedCall = lambda tensors: None,
) -> float:
    """The approximate time of `call` in microseconds: the least of a few cold runs, as others may
    use the device meanwhile. enough_us: a much slower call runs only three times. clear: as in
    `measure`."""
    host_us = host_time(call, [tensors], device, FIRST_GLANCES)
    found = cold_runs(call, [tensors], device, FIRST_GLANCES, host_us, clear)
    if min(found) <= MUCH * enough_us:
        found += cold_runs(call, [tensors], device, GLANCES, host_us, clear)
    return min(found)


def cold_runs(
    call: TimedCall,
    sets: Sequence[Any],
    device: Device,
    runs: int,
    host_us: float,
    clear: TimedCall = lambda tensors: None,
) -> list[float]:
    """Microseconds of each of `runs` cold calls. clear: as in `measure`."""
    found: list[float] = []
    while len(found) < runs:
        marks = []
        for n in range(min(AT_ONCE, runs - len(found))):
            clear(sets[n % len(sets)])
            # The wait outlasts issuing the call, so the device does not idle between the events.
            device.spin(1.5 * host_us + 10)
            device.flush()
            start = device.mark()
            call(sets[n % len(sets)])
            marks.append((start, device.mark()))
        device.wait()
        found += [device.us_between(start, end) for start, end in marks]
    return found


def host_time(call: TimedCall, sets: Sequence[Any], device: Device, runs: int = WALL_RUNS) -> float:
    """The median host time of issuing a call, in microseconds, over `runs` calls."""
    found = []
    for n in range(runs):
        before = device.now()
        call(sets[n % len(sets)])
        found.append(1e6 * (device.now() - before))
        device.wait()
    return median(found)


def wall_times(call: TimedCall, sets: Sequence[Any], device: Device) -> list[float]:
    """Microseconds of each of WALL_RUNS calls by the host's clock."""
    found = []
    for n in range(WALL_RUNS):
        device.flush()
        device.wait()
        before = device.now()
        call(sets[n % len(sets)])
        device.wait()
        found.append(1e6 * (device.now() - before))
    return found


def _require_agreement(times: Times) -> None:
    if not times.agree():
        raise BackendError(
            "time",
            f"the host's clock shows {times.wall_us:.1f} us for a call, the device's events "
            f"{times.us:.1f} us: there is work that the events do not span",
        )
