"""Functions of one element, choices and casts equal PyTorch's in float64."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from frontends.aten.against import agree, results
from frontends.aten.arguments import INTEGERS, SEEDS, SHAPES, integers, reals, truths
from frontends.aten.pointwise import _NAMED

ATEN = torch.ops.aten
_WHOLE = ("abs", "neg", "sign", "ceil", "floor", "trunc", "square", "relu")  # keep integers


@pytest.mark.parametrize("name", _NAMED)
@settings(max_examples=12, deadline=None)
@given(shape=SHAPES, seed=SEEDS)
def test_functions(name, shape, seed):
    operator = getattr(ATEN, name).default
    agree(operator, reals(shape, seed, special=True))
    agree(operator, reals(shape, seed, torch.float16))
    for dtype in INTEGERS if name in _WHOLE else (torch.int64,):
        agree(operator, integers(shape, seed, dtype))


@settings(max_examples=30, deadline=None)
@given(SHAPES, SEEDS, st.integers(-2, 4))
def test_rounding(shape, seed, decimals):
    x = reals(shape, seed, special=True)
    agree(ATEN.round.default, x)
    agree(ATEN.round.decimals, x * 10, decimals=decimals)
    agree(ATEN.round.default, integers(shape, seed))


@settings(max_examples=30, deadline=None)
@given(SHAPES, SEEDS)
def test_functions_of_two(shape, seed):
    x, y = reals(shape, seed, special=True), reals(shape[1:], seed + 1, special=True)
    agree(ATEN.atan2.default, x, y)
    agree(ATEN.logaddexp.default, x, y)
    agree(ATEN.xlogy.Tensor, x, y)
    agree(ATEN.xlogy.Scalar_Self, 0, y)
    agree(ATEN.xlogy.Scalar_Other, x, 2)
    agree(ATEN.angle.default, x)
    agree(ATEN.angle.default, integers(shape, seed))
    agree(ATEN.polar.default, reals(shape, seed).abs(), reals(shape, seed + 1))


@settings(max_examples=30, deadline=None)
@given(SHAPES, SEEDS)
def test_the_inverse_of_the_error_function(shape, seed):
    x = torch.erf(reals(shape, seed) / 2)
    agree(ATEN.erfinv.default, x, rtol=1e-7)  # steep near 1
    agree(ATEN.erfinv.default, torch.tensor([0.0, 1.0, -1.0, 0.7, -0.7, 2.0, 0.999999]).double())


@settings(max_examples=30, deadline=None)
@given(SHAPES, SEEDS, st.sampled_from((torch.float64, torch.float32, torch.float16)))
def test_numbers_for_what_is_none(shape, seed, dtype):
    x = reals(shape, seed, dtype, special=True)
    agree(ATEN.nan_to_num.default, x)
    agree(ATEN.nan_to_num.default, x, 1.0, 2.0, -3.0)
    agree(ATEN.nan_to_num.default, integers(shape, seed))


@settings(max_examples=30, deadline=None)
@given(SHAPES, SEEDS)
def test_choices(shape, seed):
    x, y = reals(shape, seed, special=True), reals(shape[1:], seed + 1)
    mask = truths(shape[:1] and (shape[0], *(1 for _ in shape[1:])), seed)
    whole = integers((), seed)
    agree(ATEN.where.self, mask, x, y)
    agree(ATEN.where.self, mask, x, whole)
    agree(ATEN.where.ScalarOther, mask, x, 2)
    agree(ATEN.where.ScalarSelf, mask, 2.5, y)
    agree(ATEN.where.Scalar, mask, 2, 3)
    agree(ATEN.where.self, mask, mask, ~mask)
    agree(ATEN.masked_fill.Scalar, x, mask, -math.inf)
    agree(ATEN.masked_fill.Tensor, x, mask, whole)
    agree(ATEN.masked_fill.Scalar, integers(shape, seed), mask, 3)


@settings(max_examples=60, deadline=None)
@given(
    SHAPES,
    SEEDS,
    st.sampled_from((torch.float64, torch.float16, torch.bool, *INTEGERS)),
    st.sampled_from((torch.float64, torch.float32, torch.bfloat16, torch.bool, *INTEGERS)),
)
def test_casts(shape, seed, given, wanted):
    real = given.is_floating_point
    x = reals(shape, seed).abs().to(given) if real else integers(shape, seed, given)
    agree(ATEN._to_copy.default, x, dtype=wanted)
    agree(ATEN.to.dtype, x, wanted)


def test_nothing_is_computed_of_real_numbers_that_are_resolved():
    agree(ATEN.resolve_conj.default, torch.ones(3))
    agree(ATEN.resolve_neg.default, torch.ones(3))


def test_complex_results_have_a_dimension_for_their_parts():
    (theirs,), (ours,) = results(ATEN.polar.default, torch.ones(3), torch.zeros(3))
    assert theirs.shape == (3,) and ours.shape == (3, 2)


@settings(max_examples=30, deadline=None)
@given(SHAPES, SEEDS)
def test_lengths_powers_and_signs(shape, seed):
    x, y = reals(shape, seed, special=True), reals(shape, seed + 1)
    agree(ATEN.hypot.default, x, y)
    agree(ATEN.hypot.default, y * 1e200, y)
    agree(ATEN.ldexp.Tensor, y, integers(shape, seed))
    agree(ATEN.signbit.default, x)
    agree(ATEN.signbit.default, integers(shape, seed))
    agree(ATEN.signbit.default, torch.tensor([0.0, -0.0]))


@settings(max_examples=30, deadline=None)
@given(SHAPES, SEEDS, st.integers(-3, 3))
def test_fake_quantisation(shape, seed, zero_point):
    x = reals(shape, seed)
    agree(ATEN.fake_quantize_per_tensor_affine_cachemask.default, x, 0.25, zero_point, -8, 7)


@pytest.mark.parametrize("axis", [0, 1])
def test_fake_quantisation_of_channels(axis):
    x = torch.arange(-6, 6).reshape(3, 4) / 8  # half of a step is among them
    scale, zero = (
        torch.tensor([0.25, 0.5, 0.125, 1.0])[: x.shape[axis]],
        torch.tensor([0, 1, -3, 2]),
    )
    operator = ATEN.fake_quantize_per_channel_affine_cachemask.default
    for kind in (torch.int32, torch.float32):
        agree(operator, x, scale, zero[: x.shape[axis]].to(kind), axis, -4, 3)
