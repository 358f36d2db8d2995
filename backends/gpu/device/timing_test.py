"""Timing on a simulated device whose times are known."""

import pytest

from backends.backend import BackendError
from backends.gpu.device import timing
from backends.gpu.device.fake import Fake


def test_the_median_of_cold_calls_without_the_host(monkeypatch):
    device = Fake(host_us=200.0)
    times = timing.measure(device.call, [40.0], device, 0.01)
    assert times.us == times.least == times.p20 == times.p80 == pytest.approx(40.0)
    assert times.host_us == pytest.approx(200.0)
    assert times.wall_us == pytest.approx(240.0)
    assert times.runs == 250
    assert set(times.figures()) == {"us_least", "us_p20", "us_p80", "runs", "host_us", "wall_us"}


def test_calls_go_around_the_sets():
    device = Fake()
    times = timing.measure(device.call, [10.0, 20.0, 30.0], device, 0.001)
    assert {10.0, 20.0, 30.0} == set(device.seen)
    assert times.least == pytest.approx(10.0)
    assert times.us == pytest.approx(20.0)
    assert times.p20 < times.us < times.p80


@pytest.mark.parametrize(("us", "runs"), [(1.0, timing.MOST_RUNS), (1e6, timing.LEAST_RUNS)])
def test_how_many_runs_is_bounded(us, runs):
    device = Fake()
    assert timing.measure(device.call, [us], device, 0.3).runs == runs


def test_work_that_events_do_not_see_is_refused():
    device = Fake(late=400.0)
    with pytest.raises(BackendError, match="work that the events do not span") as seen:
        timing.measure(device.call, [40.0], device, 0.001)
    assert seen.value.stage == "time"


def test_a_host_that_is_busy_once_is_asked_again(monkeypatch):
    device, shown = Fake(host_us=20.0), iter([[900.0] * 5])
    right = timing.wall_times
    monkeypatch.setattr(timing, "wall_times", lambda *given: next(shown, None) or right(*given))
    times = timing.measure(device.call, [40.0], device, 0.001)
    assert times.us == pytest.approx(40.0) and times.wall_us == pytest.approx(60.0)


def test_a_glance_is_a_few_cold_runs_and_fewer_of_what_is_slow():
    device = Fake()
    assert timing.glance(device.call, 40.0, device, 50.0) == pytest.approx(40.0)
    runs = len(device.seen)
    slow = Fake()
    assert timing.glance(slow.call, 400.0, slow, 50.0) == pytest.approx(400.0)
    assert len(slow.seen) == 2 * timing.FIRST_GLANCES < runs
