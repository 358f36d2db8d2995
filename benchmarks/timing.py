"""Timing: how long one call keeps the device busy. All kernels and baselines are timed in the same
way.

Runs are those of `backends/gpu/device/timing.py`: cold, between device events, with the launch
overhead hidden for every call (`host_us` reports it). The device works for a tenth of a second
before them, so its clocks are steady. There are more runs than in a search. The result is the mean
over sets of inputs of the median on each, because sets differ in their work. Launches wait in the
device's queue for the same time, however busy the host is. (A chain of six short kernels takes the
same after waits of 120 to 1500 us on an H100; the placement of its tensors makes 2% to 7%, which
`benchmarks.witnesses` averages out.)

Work on a side stream is invisible to events. So the host also clocks a call between two waits for
the whole device. Its time may exceed the events' and the host's own time only a little
(`clocks_agree`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

from backends.gpu.device.timing import (
    FIRST_RUNS,
    SLACK,
    SLACK_US,
    TRIES,
    Device,
    cold_runs,
    host_time,
    wall_times,
)

LEAST_RUNS = 30
MOST_RUNS = 400
WARM_UP = 5
# A device that idled, for example during a compilation, raises its clocks only while it works.
STEADY_US, STEADY_SPINS = 2000.0, 50
SECONDS = 0.15  # Approximate time of the measured calls, in seconds.
# Smallest assumed host time of a call. It doubles until it covers what the call needs.
ISSUE_US = 300.0
# Limit of p80 over p20. Beyond it something disturbed the runs.
SPREAD, SPREAD_US = 0.15, 2.0

TimedCall = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class RaceTimes:
    """Times in microseconds."""

    us: float  # The mean over sets of inputs of the median on each.
    # `p20` and `p80` of the runs, without the differences between sets of inputs.
    p20: float
    p80: float
    runs: int
    host_us: float  # Issuing one call.
    # One call on the host's clock, with an idle device before and after. It is the minimum of a few
    # calls, because hidden work would be in all of them.
    wall_us: float

    @property
    def clocks_agree(self) -> bool:
        """Whether the host's clock and the events agree: the events missed no work, and the host
        missed no time."""
        most = (1 + SLACK) * (self.p80 + self.host_us) + SLACK_US
        return self.wall_us <= most and self.us <= 1.5 * self.wall_us + SLACK_US

    @property
    def fault(self) -> str:
        """Why these times are not valid in a race. Empty if they are."""
        if not self.clocks_agree:
            words = f"{self.wall_us:.0f} us by the host's, {self.us:.0f} by the device's"
            return f"the clocks disagree: {words}"
        if self.p80 > (1 + SPREAD) * self.p20 + SPREAD_US:
            return f"its times spread: a fifth is below {self.p20:.1f} us, and a fifth above {self.p80:.1f}"
        return ""


def measure(
    call: TimedCall,
    sets: Sequence[Sequence[Any]],
    device: Device,
    seconds: float = SECONDS,
    least: int = LEAST_RUNS,
    most: int = MOST_RUNS,
    spins: int = STEADY_SPINS,
) -> RaceTimes:
    """Times `call(*inputs)` on alternating sets of inputs, as the module describes.

    least: minimum number of runs, however long a call takes.
    most: maximum number of runs.
    spins: warm-up before the runs, of STEADY_US each.
    """

    def once(inputs: Sequence[Any]) -> None:
        call(*inputs)

    for _ in range(spins):
        device.spin(STEADY_US)
    for n in range(max(WARM_UP, len(sets))):
        once(sets[n % len(sets)])
    device.wait()
    host_us = host_time(once, sets, device)
    queued_us = _queued(host_us)
    first = cold_runs(once, sets, device, FIRST_RUNS, queued_us)
    runs = int(1e6 * seconds / max(median(first), 1e-3))
    runs = max(len(sets), min(most, max(least, runs)))
    found = cold_runs(once, sets, device, runs, queued_us)
    medians = [median(found[n :: len(sets)]) for n in range(len(sets))]
    us = mean(medians)
    alike = sorted(one - medians[n % len(sets)] + us for n, one in enumerate(found))
    return RaceTimes(
        us=us,
        p20=alike[int(0.2 * (runs - 1))],
        p80=alike[int(0.8 * (runs - 1))],
        runs=runs,
        host_us=host_us,
        wall_us=min(wall_times(once, sets, device)),
    )


def _queued(host_us: float) -> float:
    """Returns the assumed host time of a call. Calls with similar needs have the same."""
    found = ISSUE_US
    while found < host_us:
        found *= 2
    return found


def mean_of(every: Sequence[RaceTimes]) -> RaceTimes:
    """Returns the mean of the times of several processes, with the maximum of the host's clocks."""
    return RaceTimes(
        us=mean(one.us for one in every),
        p20=mean(one.p20 for one in every),
        p80=mean(one.p80 for one in every),
        runs=sum(one.runs for one in every),
        host_us=max(one.host_us for one in every),
        wall_us=min(one.wall_us for one in every),
    )


def steadiest(timed: Callable[[], RaceTimes]) -> RaceTimes:
    """Takes times, and repeats while they have a fault. If all have one, it returns the last.
    timed: takes them."""
    found = timed()
    for _ in range(TRIES - 1):
        if not found.fault:
            break
        found = timed()
    return found
