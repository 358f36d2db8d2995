"""Tests counted calls: their inputs, their sums, and the time of a call from several requests."""

import gc
import random

import pytest
import torch

from benchmarks.foreign import counted as counting
from benchmarks.foreign.counted import Drawn, PerCall, Request, batches, counted

REQUEST = Request(seed=5, calls=30)
SCALES = [50.0]


def inputs(dtype=torch.float32):
    torch.manual_seed(1)
    half = torch.randn(6, 6)
    lower = (half + half.T).tril().to(dtype)
    lower[0, 0] = 0.0
    return [lower, {"n": torch.tensor([1, 2]), "s": torch.tensor(0.5)}, 3]


@pytest.fixture(autouse=True)
def few_together(monkeypatch):
    monkeypatch.setattr(counting, "TOGETHER", 8)


def seen(call=lambda given: given[0].sum(), request=REQUEST, dtype=torch.float32):
    """Returns the inputs of calls, and the reported sums."""
    found = []

    def keep(*given):
        found.append([given[0].clone(), given[1]["n"].clone(), given[1]["s"].clone(), given[2]])
        return call(given)

    return found, counted(keep, [Drawn(inputs(dtype))], request, SCALES)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_no_two_calls_have_the_same_inputs_and_their_structure_stays(dtype):
    found, sums = seen(dtype=dtype)
    assert len(found) == len(sums) == REQUEST.calls
    given = inputs(dtype)[0]
    for x, n, s, number in found:
        share = (x.double() / given.double())[given != 0]
        assert x.dtype == dtype and 0.49 < share.min() and share.max() < 1.01
        assert torch.equal(x == 0, given == 0) and share.max() > 1.05 * share.min()
        assert (n.tolist(), float(s), number) == ([1, 2], 0.5, 3)
    assert len({tuple(x.flatten().tolist()) for x, *_ in found}) == REQUEST.calls


def test_a_symmetric_matrix_stays_one():
    half = torch.randn(5, 5)
    given = Drawn([half + half.T])
    made = given.filled(3, given.draws(1)[3], [0.7], SCALES)[0]
    assert torch.allclose(made, made.T) and not torch.allclose(made, half + half.T)


def test_what_calls_change_is_made_anew():
    def changes(given):
        total = given[0].sum()
        for tensor in (given[0], given[1]["n"], given[1]["s"]):
            tensor.zero_()
        return total

    assert seen(changes)[1] == seen()[1]


def test_inputs_follow_from_the_sums_of_the_call_before():
    """The next inputs depend on the result of a call, and on nothing else, so they are unknown
    without it."""
    first, sums = seen()
    wrong = iter(range(REQUEST.calls))
    other, _ = seen(lambda given: given[0].sum() + (1.0 if next(wrong) == 11 else 0.0))
    same = [torch.equal(a[0], b[0]) for a, b in zip(first, other, strict=True)]
    assert all(same[:12]) and not any(same[12:]), same
    drawn = Drawn(inputs())
    (batch,) = [b for b in batches(REQUEST, 1, drawn.together) if b.first == 8]
    again = drawn.filled(4, drawn.draws(batch.seed)[4], sums[11], SCALES)
    assert torch.equal(again[0], first[12][0]), "the judge makes them of what it is told"


@pytest.mark.parametrize("sets", [1, 2])
@pytest.mark.parametrize("calls", [1, 8, 9, 30])
def test_batches_cover_a_request(sets, calls):
    found = list(batches(Request(3, calls), sets, 8))
    numbers = [b.first + n for b in found for n in range(len(b.shifts))]
    assert numbers == list(range(calls)) and len({b.seed for b in found}) == len(found)
    assert {b.set for b in found} == set(range(min(sets, len(found))))


def test_a_linear_function_has_other_weights_in_each_call():
    """Otherwise its sums are products of inputs and of precomputed weights."""
    matrix, kept = torch.randn(6, 6), torch.ones(6, 6)
    sums = counted(lambda *_: kept @ matrix, [Drawn(inputs())], REQUEST, SCALES)
    assert len({s for (s,) in sums}) == REQUEST.calls


def drawn_requests(rng):
    requests = [Request(n, rng.randint(32, 4096)) for n in range(rng.randint(2, 8))]
    us = 10.0 ** rng.uniform(0, 3)
    return us, requests, [1e-6 * us * r.calls for r in requests]


@pytest.mark.parametrize("seed", range(200))
def test_whatever_is_added_to_requests_makes_no_call_shorter(seed):
    rng = random.Random(seed)
    us, requests, seconds = drawn_requests(rng)
    honest = PerCall.of(requests, seconds)
    assert honest.us == pytest.approx(us) and honest.within_us == pytest.approx(0.0, abs=1e-6 * us)
    assert honest.steady(0.01)
    longest = max(r.calls for r in requests)
    kinds = [
        lambda r: rng.random() * 1e-3,
        lambda r: 1e-6 * us * (longest - r.calls),  # A slope over lengths would be zero.
        lambda r: 1e-6 * us * r.calls * (r.calls != longest),
    ]
    late = [s + kinds[seed % 3](r) for r, s in zip(requests, seconds, strict=True)]
    found = PerCall.of(requests, late)
    assert found.us >= us * (1 - 1e-9)
    assert found.least_us <= found.us * (1 + 1e-9) and found.us <= found.most_us * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_who_is_fast_in_few_requests_is_not_steady(seed):
    rng = random.Random(seed)
    us, requests, seconds = drawn_requests(rng)
    fast = rng.randrange(len(seconds))
    found = PerCall.of(requests, [s * (1.0 if n == fast else 2.0) for n, s in enumerate(seconds)])
    assert not found.steady(0.25) and found.us >= 1.5 * us


@pytest.mark.parametrize("seed", range(20))
def test_a_few_requests_that_the_host_delays_do_not_matter(seed):
    rng = random.Random(seed)
    us = 10.0 ** rng.uniform(0, 3)
    requests = [Request(n, rng.randint(32, 4096)) for n in range(9)]
    late = rng.sample(range(9), 2)
    seconds = [1e-6 * us * r.calls * (3.0 if r.seed in late else 1.0) for r in requests]
    found = PerCall.of(requests, seconds)
    assert found.steady(0.01) and found.us == pytest.approx(us) and found.most_us > 2.9 * us


def test_no_garbage_is_collected_between_calls():
    collects = []
    seen(lambda x: collects.append(gc.isenabled()) or x[0].sum())
    assert collects == [False] * REQUEST.calls and gc.isenabled()
