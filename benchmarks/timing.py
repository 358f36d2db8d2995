"""Timing: how long one call keeps the device busy, the same for every kernel and baseline.

Runs are as `backends/gpu/device/timing.py` makes them: cold, between device events, with what
launching costs hidden for everyone alike (it is reported on its own, as `host_us`). The device works
for a tenth of a second before them, so that its clocks are steady. The result is of many runs, more of them
than a search takes: the median on each set of inputs, and the mean of these, as sets differ in the work that
they give. What is issued waits in the device's queue for as long as that of any other call does, however
busy the host is. (A chain of six short kernels takes the same after waits of 120 to 1500 us on an H100; where its
tensors lie makes 2% to 7%, which `benchmarks.witnesses` is for.)

Events can be fooled by work on a side stream, so a call is also clocked by the host between two
waits for the whole device: what that shows beyond the events and the host's own time must be
small (`clocks_agree`).
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
# A device that idled, as while something is compiled, raises its clocks only while it works
STEADY_US, STEADY_SPINS = 2000.0, 50
SECONDS = 0.15  # of measured calls, about
ISSUE_US = 300.0  # the least that the host is thought to need for a call; twice that, or four times, where it needs more
# How far p80 may lie above p20: beyond it something disturbed the runs
SPREAD, SPREAD_US = 0.15, 2.0

TimedCall = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class RaceTimes:
    """Microseconds."""

    us: float  # the mean over sets of inputs of the median on each
    # `p20` and `p80`: of the runs, less what sets of inputs differ in
    p20: float
    p80: float
    runs: int
    host_us: float  # issuing one call
    # One call on the host's clock, device idle before and after; the least of a few, as hidden work
    # would be in all of them
    wall_us: float

    @property
    def clocks_agree(self) -> bool:
        """Whether the host's clock leaves no room for work that the events missed, nor the
        events for time that the host did not see."""
        most = (1 + SLACK) * (self.p80 + self.host_us) + SLACK_US
        return self.wall_us <= most and self.us <= 1.5 * self.wall_us + SLACK_US

    @property
    def fault(self) -> str:
        """Why these are no times of a race; empty where they are."""
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
    """Times `call(*inputs)` on sets of inputs in turn; see the module for how. least: runs, for
    however long a call takes.  most: runs.  spins: of STEADY_US each, before any of them."""

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
    """What the host is thought to need for a call, the same for all that need about as much."""
    found = ISSUE_US
    while found < host_us:
        found *= 2
    return found


def mean_of(every: Sequence[RaceTimes]) -> RaceTimes:
    """The mean of what several processes have; the most of the host's clocks."""
    return RaceTimes(
        us=mean(one.us for one in every),
        p20=mean(one.p20 for one in every),
        p80=mean(one.p80 for one in every),
        runs=sum(one.runs for one in every),
        host_us=max(one.host_us for one in every),
        wall_us=min(one.wall_us for one in every),
    )


def steadiest(timed: Callable[[], RaceTimes]) -> RaceTimes:
    """Times, taken again where they have a fault; the last ones where all have. timed: takes them."""
    found = timed()
    for _ in range(TRIES - 1):
        if not found.fault:
            break
        found = timed()
    return found
