"""Tests the clock of a solution's calls on a simulated device."""

import pytest
import torch

from backends.gpu.device.fake import Fake
from benchmarks.foreign.stopwatch import UNCHANGED, EventClock, Inputs
from benchmarks.foreign.sums import Sums

SETS = [
    [torch.arange(4.0) + 0.5, torch.tensor([1, 2])],
    [torch.full((4,), 0.25), torch.tensor([3, 4])],
]
PLAN = [(0, 5), (1, 6), (0, 7), (1, 8), (0, UNCHANGED), (1, UNCHANGED)]
WEIGHTS = 3


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
    timed = clock.times(doubled(fake), SETS, PLAN, WEIGHTS)
    us, results = timed.us, timed.results
    assert us == pytest.approx([120.0] + [100.0] * 5, rel=0.3) and len(fake.seen) == len(PLAN)
    for (x, _), result in zip(SETS, results, strict=True):
        assert torch.equal(result, 2 * x)
    assert torch.equal(SETS[0][0], torch.arange(4.0) + 0.5), "sets stay as they are"


@pytest.mark.parametrize("key", [lambda x: x.data_ptr(), lambda x: tuple(x.shape)])
def test_what_keeps_results_by_where_inputs_lie_is_wrong(clock, key):
    kept = {}

    def call(x, _):
        return kept.setdefault(key(x), 2 * x)

    results = clock.times(call, SETS, PLAN, WEIGHTS).results
    assert not any(torch.equal(r, 2 * x) for (x, _), r in zip(SETS, results, strict=True))


def test_what_keeps_results_by_what_inputs_hold_computes_each_time(clock):
    computed = []

    def call(x, _):
        key = tuple(x.tolist())
        if key not in computed:
            computed.append(key)
        return 2 * x

    clock.times(call, SETS, PLAN, WEIGHTS)
    assert len(computed) == len(PLAN)


def test_results_are_those_of_when_the_clock_stopped(clock):
    shared = torch.zeros(4)
    results = clock.times(lambda x, _: shared, SETS, PLAN, WEIGHTS).results
    shared += 1  # Too late.
    assert all(torch.equal(r, torch.zeros(4)) for r in results)


def test_a_call_that_changes_its_inputs_gets_them_anew(clock):
    seen = []

    def call(x, i):
        seen.append((x.tolist(), i.tolist()))
        x.zero_()
        i.zero_()
        return x

    clock.times(call, SETS, [(0, UNCHANGED), (0, UNCHANGED)], WEIGHTS)
    assert seen == [([0.5, 1.5, 2.5, 3.5], [1, 2])] * 2


def test_a_run_that_calls_nothing_takes_the_flush(clock):
    assert clock.idle(SETS, SETS[0][0]) == pytest.approx(500.0)


def test_no_draw_is_another_times_a_factor_and_structure_stays():
    half = torch.randn(5, 5)
    lower = (half + half.T).tril()
    lower[0, 0] = 0.0
    given = Inputs([lower, torch.randn(3, 4, 2).half(), torch.tensor([1.0, -1.0])])
    first, other = ([t.clone() for t in given.filled(draw)] for draw in (1, 2))
    assert torch.equal(first[0] == 0, lower == 0) and torch.equal(first[0].sign(), lower.sign())
    for a, b, value in zip(first[:2], other[:2], (lower, given.filled(UNCHANGED)[1]), strict=True):
        ratios = (a.double() / b.double())[value != 0]
        assert ratios.max() > 1.05 * ratios.min()
        share = (a.double() / value.double())[value != 0]
        assert 0.49 < share.min() and share.max() < 1.01
    assert torch.equal(first[2], torch.tensor([1.0, -1.0])), "labels"
    again = half + half.T
    made = Inputs([again]).filled(9)[0]
    assert torch.allclose(made, made.T) and not torch.allclose(made, again)
    assert given.vary and not Inputs([torch.ones(3), torch.tensor([1])]).vary


def told(result, seed=WEIGHTS):
    return [float(s) for s in Sums(seed).of(result)]


def test_a_sum_tells_results_apart_wherever_they_differ():
    result = [torch.randn(70, 3), {"n": torch.arange(9)}, torch.tensor(True), "words"]
    known = Sums(WEIGHTS)
    first = [float(s) for s in known.of(result)]
    assert len(first) == len(known.norms(result)) == 3
    assert first == [float(s) for s in known.of(result)] == told(result)
    assert first != told(result, WEIGHTS + 1)
    for at in (0, 100, 209):
        other = result[0].clone()
        other.view(-1)[at] += 1.0
        assert told([other])[0] != first[0]
    assert told([torch.empty(0), torch.ones(3, dtype=torch.float16)])[0] == 0.0


def test_long_results_have_the_weights_over_and_over(monkeypatch):
    result = torch.randn(1000)
    once = told([result[:300]])[0] + told([result[:300] * 0])[0]
    monkeypatch.setattr("benchmarks.foreign.sums.MOST", 300)
    parts = [torch.zeros(1000).index_copy_(0, torch.arange(300), result[:300])]
    assert told(parts)[0] == pytest.approx(once)
    assert told([result])[0] != told(parts)[0]


@pytest.mark.parametrize("seed", range(5))
def test_a_norm_is_how_far_a_sum_goes(seed):
    result = torch.randn(4000)
    assert abs(told([result], seed)[0]) < 4 * Sums(seed).norms([result])[0]
