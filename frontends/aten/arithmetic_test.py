"""Arithmetic operators equal PyTorch's in float64."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from frontends.aten.against import agree
from frontends.aten.arguments import INTEGERS, SEEDS, SHAPES, integers, reals, truths

ATEN = torch.ops.aten
DTYPES = st.sampled_from((torch.float64, torch.float32, torch.float16, torch.bfloat16, *INTEGERS))


def _some(shape, seed, dtype):
    return reals(shape, seed, dtype) if dtype.is_floating_point else integers(shape, seed, dtype)


@settings(max_examples=40, deadline=None)
@given(SHAPES, SEEDS, DTYPES, DTYPES)
def test_sums_and_products_are_broadcast_and_promoted(shape, seed, kind, other):
    x, y = _some(shape, seed, kind), _some(shape[1:], seed + 1, other)
    for operator in (ATEN.add.Tensor, ATEN.sub.Tensor, ATEN.mul.Tensor, ATEN.maximum.default):
        agree(operator, x, y)
    agree(ATEN.minimum.default, y, x)
    agree(ATEN.add.Tensor, x, y, alpha=3)
    agree(ATEN.sub.Scalar, x, 3, 2)
    agree(ATEN.mul.Scalar, x, 2.5)
    agree(ATEN.rsub.Scalar, x, 3)
    agree(ATEN.rsub.Tensor, x, y, alpha=2)
    agree(ATEN.add.Tensor, truths(shape, seed), x)
    agree(ATEN.mul.Tensor, truths(shape, seed), truths(shape, seed + 1))


@settings(max_examples=40, deadline=None)
@given(SHAPES, SEEDS, DTYPES, st.sampled_from((None, "floor", "trunc")))
def test_quotients_and_remainders(shape, seed, kind, mode):
    x, y = _some(shape, seed, kind), _some(shape[:1] and shape, seed + 1, kind)
    y = torch.where(y == 0, torch.ones_like(y), y)
    if kind in (torch.float16, torch.bfloat16):
        x, y = x.double(), y.double()
    agree(ATEN.div.Tensor, x, y)
    agree(ATEN.true_divide.Tensor, x, y)
    agree(ATEN.div.Tensor_mode, x, y, rounding_mode=mode)
    agree(ATEN.div.Scalar_mode, x, 3, rounding_mode=mode)
    agree(ATEN.divide.Tensor, x, y)
    agree(ATEN.floor_divide.default, x, y)
    for operator in (ATEN.remainder, ATEN.fmod):
        agree(operator.Tensor, x, y)
        agree(operator.Scalar, x, 3)
    agree(ATEN.remainder.Scalar_Tensor, 7, y)
    agree(ATEN.reciprocal.default, y)


@settings(max_examples=30, deadline=None)
@given(SHAPES, SEEDS, st.sampled_from((0, 1, 2, 3, 0.5, -0.5, -1, -2, 2.5, 4, -3)))
def test_powers(shape, seed, exponent):
    x, y = reals(shape, seed, special=True), reals(shape, seed + 1)
    whole, small = integers(shape, seed), integers(shape, seed + 1, low=0, high=5)
    agree(ATEN.pow.Tensor_Scalar, x, exponent)
    agree(ATEN.pow.Tensor_Tensor, x.abs(), y)
    agree(ATEN.pow.Scalar, 2, y)
    agree(ATEN.pow.Tensor_Tensor, whole, small)
    agree(ATEN.pow.Tensor_Scalar, whole, 3)
    agree(ATEN.pow.Scalar, 3, small)
    agree(ATEN.pow.Tensor_Tensor, x, small)


@settings(max_examples=30, deadline=None)
@given(SHAPES, SEEDS, st.floats(-2, 2))
def test_combinations_of_three(shape, seed, value):
    x, y, z = (reals(shape[n % 2 :], seed + n) for n in range(3))
    x = x.expand(shape).contiguous()
    agree(ATEN.addcmul.default, x, y, z, value=value)
    agree(ATEN.addcdiv.default, x, y, z, value=value)
    agree(ATEN.addcmul.default, *(integers(shape, seed + n) for n in range(3)), value=2)
    agree(ATEN.lerp.Scalar, x, z, value)
    agree(ATEN.lerp.Tensor, x, z, torch.sigmoid(y))


@settings(max_examples=30, deadline=None)
@given(SHAPES, SEEDS)
def test_bounds_and_signs(shape, seed):
    x, y = reals(shape, seed, special=True), reals(shape, seed + 1, special=True)
    agree(ATEN.clamp.default, x, -0.5, 1.0)
    agree(ATEN.clamp.default, x, None, 1)
    agree(ATEN.clamp.default, x, 2.0, 1.0)
    agree(ATEN.clamp.Tensor, x, y, y + 1)
    agree(ATEN.clamp.Tensor, x, None, y)
    agree(ATEN.clamp_min.default, x, 0.25)
    agree(ATEN.clamp_max.Tensor, x, y)
    agree(ATEN.clamp.default, integers(shape, seed), -2, 5)
    agree(ATEN.clamp.default, integers(shape, seed), 0.5, 5)
    agree(ATEN.copysign.Tensor, x, torch.nan_to_num(y))
    agree(ATEN.copysign.Scalar, x, -0.0)
    for operator in (ATEN.maximum, ATEN.minimum, ATEN.fmax, ATEN.fmin):
        agree(operator.default, x, y)
        agree(operator.default, reals(shape, seed, torch.bfloat16, special=True), y.bfloat16())
        agree(operator.default, integers(shape, seed), integers(shape, seed + 1))
    agree(ATEN.maximum.default, truths(shape, seed), truths(shape, seed + 1))


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_constants_need_not_be_finite(value):
    agree(ATEN.add.Tensor, torch.ones(3), value)
