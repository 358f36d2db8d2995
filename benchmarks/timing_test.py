"""Tests timing with a fake device and a fake clock."""

from __future__ import annotations

import pytest

from backends.gpu.device.timing import SLACK_US, TRIES
from benchmarks.timing import (
    ISSUE_US,
    LEAST_RUNS,
    MOST_RUNS,
    STEADY_SPINS,
    STEADY_US,
    RaceTimes,
    measure,
    steadiest,
)


class FakeDevice:
    """One queue and a host. Times are in microseconds. hidden: work that events do not see."""

    def __init__(self, host=20.0, hidden=0.0):
        self.time = 0.0  # Time of the host.
        self.free = 0.0  # When the queue becomes empty.
        self.side = 0.0  # When the other queue becomes empty.
        self.host, self.hidden, self.flushed = host, hidden, 0

    def busy(self, us):
        self.free = max(self.free, self.time) + us

    def flush(self):
        self.flushed += 1
        self.busy(100.0)

    def spin(self, us):
        self.busy(us)

    def mark(self):
        self.busy(0.0)
        return self.free

    def us_between(self, first, second):
        return second - first

    def wait(self):
        self.time = max(self.time, self.free, self.side)

    def now(self):
        return self.time / 1e6

    def kernel(self, us):
        """Returns a call that takes the host some time to issue, then runs for `us`."""

        def call(*_):
            self.time += self.host
            self.busy(us)
            self.side = max(self.side, self.time) + self.hidden

        return call


@pytest.mark.parametrize("us", [3.0, 150.0, 20_000.0])
def test_the_device_time_is_measured_and_not_the_hosts(us):
    device = FakeDevice(host=500.0)
    found = measure(device.kernel(us), [(1,)], device)
    assert found.us == pytest.approx(us) and found.host_us == pytest.approx(500.0)
    assert found.p20 <= found.us <= found.p80
    assert found.clocks_agree


def test_short_calls_are_measured_more_often():
    device = FakeDevice()
    assert measure(device.kernel(20_000.0), [()], device).runs == LEAST_RUNS
    assert measure(device.kernel(1.0), [()], device).runs == MOST_RUNS
    assert LEAST_RUNS < measure(device.kernel(1000.0), [()], device).runs < MOST_RUNS


def test_inputs_go_round_and_the_cache_is_flushed_before_each():
    device, seen = FakeDevice(), []

    def call(n):
        seen.append(n)
        device.busy(1000.0)

    runs = measure(call, [(0,), (1,), (2,)], device).runs
    assert device.flushed >= runs
    assert min(seen.count(n) for n in range(3)) > runs // 4


@pytest.mark.parametrize("host", [1.0, 40.0, 290.0])
def test_calls_wait_in_the_queue_equally_long_however_busy_the_host_is(host):
    device, waits = FakeDevice(host=host), []
    device.spin = lambda us: (waits.append(us), device.busy(us))
    measure(device.kernel(5.0), [()], device)
    assert set(waits) == {STEADY_US, 1.5 * ISSUE_US + 10}
    device.host, waits[:] = 1000.0, []
    measure(device.kernel(5.0), [()], device)
    assert max(waits[STEADY_SPINS:]) >= 1000.0


def test_sets_of_inputs_that_differ_in_work_do_not_make_a_time_unsteady():
    """A median over all runs would be that of one half or the other."""
    device = FakeDevice()
    short, long = device.kernel(72.0), device.kernel(94.0)
    found = measure(lambda which: (short, long)[which](), [(0,), (1,)], device)
    assert found.us == pytest.approx(83.0) and not found.fault
    turns = iter(range(100_000))
    noisy = measure(lambda: (short, long)[next(turns) // 2 % 2](), [()], device)
    assert noisy.fault.startswith("its times spread")


def test_work_that_the_events_do_not_see_is_noticed():
    device = FakeDevice(hidden=10 * SLACK_US)
    assert not measure(device.kernel(5.0), [()], device).clocks_agree


def test_events_that_are_slower_than_the_clock_are_noticed():
    device = FakeDevice()
    device.us_between = lambda first, second: 3 * (second - first)
    assert not measure(device.kernel(500.0), [()], device).clocks_agree


def times(p80, wall=110.0):
    return RaceTimes(us=101.0, p20=100.0, p80=p80, runs=20, host_us=5.0, wall_us=wall)


def test_times_that_spread_or_that_the_clocks_tell_differently_have_a_fault():
    assert not times(114.0).fault
    assert (
        times(120.0).fault == "its times spread: a fifth is below 100.0 us, and a fifth above 120.0"
    )
    assert times(101.0, 900.0).fault.startswith("the clocks disagree: 900 us by the host's")


def test_times_with_a_fault_are_taken_again():
    given = [times(120.0), times(102.0), times(101.0)]
    assert steadiest(lambda: given.pop(0)).p80 == 102.0 and len(given) == 1
    taken = []
    assert steadiest(lambda: taken.append(1) or times(200.0 + len(taken))).p80 == 200.0 + TRIES
