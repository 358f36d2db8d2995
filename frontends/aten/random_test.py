"""Random operators have the distributions that PyTorch's have, and repeat for a seed."""

import math
from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from frontends.aten.against import agree, results
from frontends.aten.arguments import SEEDS, reals, truths

ATEN = torch.ops.aten
COUNT = 4000


def _drawn(operator, *args, seed=1, **kwargs):
    (theirs, *_), (ours, *_) = results(operator, *args, seed=seed, **kwargs)
    assert ours.shape == tuple(theirs.shape)
    return ours


def _distance(found, distribution):
    """Kolmogorov's and Smirnov's, times the root of the count: above 1.63 in 1 case of 100."""
    found = np.sort(found.ravel())
    expected = np.array([distribution(x) for x in found])
    steps = np.arange(len(found) + 1) / len(found)
    apart = max(np.abs(expected - steps[:-1]).max(), np.abs(expected - steps[1:]).max())
    return apart * math.sqrt(len(found))


def _bell(x, mean=0.0, std=1.0):
    return 0.5 * (1 + math.erf((x - mean) / std / math.sqrt(2)))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_uniform_numbers(dtype):
    x = torch.zeros(COUNT, dtype=dtype)
    assert _distance(_drawn(ATEN.rand.default, [COUNT], dtype=dtype), lambda u: u) < 1.63
    assert _distance(_drawn(ATEN.rand_like.default, x), lambda u: u) < 1.63
    between = _drawn(ATEN.uniform.default, x, 2.0, 4.0)
    assert _distance(between, lambda u: (u - 2) / 2) < 1.63


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_uniform_numbers_of_16_bits_stay_below_1(dtype):
    found = _drawn(ATEN.rand.default, [COUNT], dtype=dtype)
    assert np.array_equal(torch.tensor(found).to(dtype).double().numpy(), found)
    assert 0.99 < found.max() < 1 and abs(found.mean() - 0.5) < 0.02


def test_normal_numbers():
    x = torch.zeros(COUNT, dtype=torch.float64)
    assert _distance(_drawn(ATEN.randn.default, [40, COUNT // 40]), _bell) < 1.63
    assert _distance(_drawn(ATEN.randn_like.default, x), _bell) < 1.63
    for operator, *args in (
        (ATEN.normal.float_float, 3.0, 2.0, [COUNT]),
        (ATEN.normal.Tensor_float, x + 3, 2.0),
        (ATEN.normal.float_Tensor, 3.0, x + 2),
        (ATEN.normal.Tensor_Tensor, x + 3, x + 2),
        (ATEN.normal_functional.default, x, 3.0, 2.0),
    ):
        assert _distance(_drawn(operator, *args), lambda n: _bell(n, 3.0, 2.0)) < 1.63


def test_times_between_events():
    found = _drawn(ATEN.exponential.default, torch.zeros(COUNT), 2.0)
    assert _distance(found, lambda t: 1 - math.exp(-2 * t)) < 1.63


@pytest.mark.parametrize("low, high", [(0, 7), (-3, 4), (5, 6)])
def test_whole_numbers_are_equally_frequent(low, high):
    found = _drawn(ATEN.randint.low, low, high, [COUNT])
    counts = np.array([(found == n).sum() for n in range(low, high)])
    assert counts.sum() == COUNT
    assert np.abs(counts - COUNT / (high - low)).max() < 4 * math.sqrt(COUNT / (high - low))


def test_whole_numbers_of_a_long_range():
    found = _drawn(ATEN.randint.default, 2**40, [COUNT]) / 2**40
    assert _distance(found, lambda u: u) < 1.63
    assert len(np.unique(found)) == COUNT
    like = _drawn(ATEN.randint_like.default, torch.zeros(COUNT, dtype=torch.int64), 2**20)
    assert _distance(like / 2**20, lambda u: u) < 1.63


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 40), SEEDS)
def test_permutations_have_each_number_once(n, seed):
    found = _drawn(ATEN.randperm.default, n, seed=seed)
    assert np.array_equal(np.sort(found), np.arange(n))


def test_permutations_are_equally_frequent():
    found = [tuple(_drawn(ATEN.randperm.default, 3, seed=n)) for n in range(600)]
    counts = [found.count(order) for order in permutations(range(3))]
    assert sum(counts) == 600 and max(abs(c - 100) for c in counts) < 40


def test_chances():
    p = torch.linspace(0, 1, 5, dtype=torch.float64)
    found = _drawn(ATEN.bernoulli.default, p.expand(COUNT, 5).contiguous())
    assert set(np.unique(found)) == {0, 1}
    assert np.abs(found.mean(0) - p.numpy()).max() < 0.03
    assert abs(_drawn(ATEN.bernoulli.p, torch.zeros(COUNT), 0.3).mean() - 0.3) < 0.03
    spread = _drawn(ATEN.bernoulli.Tensor, torch.zeros(COUNT, 5), p)
    assert np.abs(spread.mean(0) - p.numpy()).max() < 0.03


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.floats(0.1, 0.9), st.sampled_from((torch.float64, torch.float16)))
def test_dropout_scales_what_stays(seed, p, dtype):
    x = reals((30, 20), seed, dtype)
    _, (found, mask) = results(ATEN.native_dropout.default, x, p, True, seed=seed)
    expected = np.where(mask, x.double().numpy() / (1 - p), 0)
    np.testing.assert_allclose(found, expected, rtol=1e-9 if dtype == torch.float64 else 1e-3)
    assert abs(mask.mean() - (1 - p)) < 0.1
    agree(ATEN.native_dropout_backward.default, x, torch.tensor(mask), 1 / (1 - p))
    agree(ATEN.native_dropout_backward.default, x, truths((30, 20), seed), 2.0)


def test_dropout_of_nothing_and_of_all():
    x = torch.ones(5, 3, dtype=torch.float64)
    agree(ATEN.native_dropout.default, x, 0.5, False)
    agree(ATEN.native_dropout.default, x, 1.0, True)
    agree(ATEN.dropout.default, x, 0.5, False)
    agree(ATEN.dropout.default, x, 1.0, True)


def test_places_are_drawn_by_their_weights():
    weights = torch.tensor([[1.0, 0, 3, 4], [0, 2, 0, 2]], dtype=torch.float64)
    again = _drawn(ATEN.multinomial.default, weights, COUNT, True)
    for row, found in zip(weights.numpy(), again, strict=True):
        shares = np.bincount(found, minlength=4) / COUNT
        np.testing.assert_allclose(shares, row / row.sum(), atol=0.03)
    first = np.array([_drawn(ATEN.multinomial.default, weights[0], 1, seed=n) for n in range(600)])
    np.testing.assert_allclose(
        np.bincount(first[:, 0], minlength=4) / 600, [1 / 8, 0, 3 / 8, 0.5], atol=0.07
    )


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 8), SEEDS)
def test_places_are_drawn_once_without_replacement(n, seed):
    found = _drawn(ATEN.multinomial.default, torch.rand(3, n) + 0.1, n, seed=seed)
    assert np.array_equal(np.sort(found, 1), np.tile(np.arange(n), (3, 1)))


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_a_seed_gives_the_same_numbers_again(seed):
    x = torch.rand(4, 30)
    for call in (
        (ATEN.rand.default, [9]),
        (ATEN.randn.default, [9]),
        (ATEN.randperm.default, 20),
        (ATEN.randint.default, 1000, [9]),
        (ATEN.bernoulli.default, x),
        (ATEN.multinomial.default, x, 5),
        (ATEN.native_dropout.default, x, 0.5, True),
    ):
        assert np.array_equal(_drawn(*call, seed=seed), _drawn(*call, seed=seed))
        assert not np.array_equal(_drawn(*call, seed=seed), _drawn(*call, seed=seed + 1))


def test_slopes_of_a_leaky_relu_are_drawn_in_training():
    x = torch.randn(40, 50, dtype=torch.float64)
    operator = ATEN.rrelu_with_noise_functional.default
    agree(operator, x, torch.zeros_like(x), 0.1, 0.3, False)
    _, (found, slopes) = results(operator, x, torch.zeros_like(x), 0.1, 0.3, True, seed=5)
    np.testing.assert_allclose(found, x.numpy() * slopes)
    below = slopes[x.numpy() < 0]
    assert np.all(slopes[x.numpy() > 0] == 1)
    assert 0.1 <= below.min() < 0.11 < 0.29 < below.max() < 0.3
    np.testing.assert_allclose(below.mean(), 0.2, atol=0.01)
