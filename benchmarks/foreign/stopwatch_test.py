"""The clock that a solution's calls are timed by, on a device that is a simulation."""

import pytest
import torch

from backends.gpu.device.fake import Fake
from benchmarks.foreign.stopwatch import EventClock

SETS = [[torch.arange(4.0), torch.tensor([1, 2])], [torch.ones(4), torch.tensor([3, 4])]]
PLAN = [(0, 0.5), (1, 0.75), (0, 0.625), (1, 0.875), (0, 1.0), (1, 1.0)]


@pytest.fixture
def fake():
    return Fake()


@pytest.fixture
def clock(fake):
    return EventClock(fake.flush, fake.mark, fake.us_between, fake.wait, fake.now)


def doubled(fake):
    def call(x, _):
        fake.call(100.0)
        return 2 * x

    return call


def test_each_call_is_cold_and_the_last_results_are_those_of_the_sets(fake, clock):
    us, results = clock.times(doubled(fake), SETS, PLAN)
    assert us == pytest.approx([120.0] + [100.0] * 5, rel=0.3) and len(fake.seen) == len(PLAN)
    for (x, _), result in zip(SETS, results, strict=True):
        assert torch.equal(result, 2 * x)
    assert torch.equal(SETS[0][0], torch.arange(4.0)), "sets stay as they are"


@pytest.mark.parametrize("key", [lambda x: x.data_ptr(), lambda x: tuple(x.shape)])
def test_what_keeps_results_by_where_inputs_lie_is_wrong(clock, key):
    kept = {}

    def call(x, _):
        return kept.setdefault(key(x), 2 * x)

    _, results = clock.times(call, SETS, PLAN)
    assert not any(torch.equal(r, 2 * x) for (x, _), r in zip(SETS, results, strict=True))


def test_what_keeps_results_by_what_inputs_hold_computes_each_time(clock):
    computed = []

    def call(x, _):
        key = tuple(x.tolist())
        if key not in computed:
            computed.append(key)
        return 2 * x

    clock.times(call, SETS, PLAN)
    assert len(computed) == len(PLAN)


def test_results_are_those_of_when_the_clock_stopped(clock):
    shared = torch.zeros(4)
    _, results = clock.times(lambda x, _: shared, SETS, PLAN)
    shared += 1  # too late
    assert all(torch.equal(r, torch.zeros(4)) for r in results)


def test_a_call_that_changes_its_inputs_gets_them_anew(clock):
    seen = []

    def call(x, i):
        seen.append((x.tolist(), i.tolist()))
        x.zero_()
        i.zero_()
        return x

    clock.times(call, SETS, [(0, 1.0), (0, 1.0)])
    assert seen == [([0.0, 1.0, 2.0, 3.0], [1, 2])] * 2


def test_a_run_that_calls_nothing_takes_the_flush(clock):
    assert clock.idle(SETS) == pytest.approx(500.0)
