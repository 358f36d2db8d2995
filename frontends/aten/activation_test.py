"""Activations and their gradients equal PyTorch's in float64."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from frontends.aten.against import agree
from frontends.aten.arguments import SEEDS, SHAPES, reals

ATEN = torch.ops.aten
FORWARD = (
    (ATEN.silu.default,),
    (ATEN.gelu.default,),
    (ATEN.elu.default,),
    (ATEN.elu.default, 1.5, 2, 0.5),
    (ATEN.celu.default, 1.5),
    (ATEN.selu.default,),
    (ATEN.leaky_relu.default, 0.2),
    (ATEN.threshold.default, 0.5, 2),
    (ATEN.hardtanh.default,),
    (ATEN.hardtanh.default, -2, 0.5),
    (ATEN.relu6.default,),
    (ATEN.hardsigmoid.default,),
    (ATEN.hardswish.default,),
    (ATEN.softplus.default,),
    (ATEN.softplus.default, 2, 1),
    (ATEN.mish.default,),
    (ATEN.log_sigmoid.default,),
    (ATEN.log_sigmoid_forward.default,),
)
BACKWARD = (
    (ATEN.gelu_backward.default,),
    (ATEN.sigmoid_backward.default,),
    (ATEN.tanh_backward.default,),
    (ATEN.silu_backward.default,),
    (ATEN.threshold_backward.default, 0.5),
    (ATEN.leaky_relu_backward.default, 0.2, False),
    (ATEN.hardtanh_backward.default, -1, 1.5),
    (ATEN.hardsigmoid_backward.default,),
    (ATEN.hardswish_backward.default,),
    (ATEN.softplus_backward.default, 2, 1),
    (ATEN.mish_backward.default,),
)


def _named(calls):
    return [f"{str(c[0]).split('.')[1]}{len(c)}" for c in calls]


@pytest.mark.parametrize("call", FORWARD, ids=_named(FORWARD))
@settings(max_examples=15, deadline=None)
@given(shape=SHAPES, seed=SEEDS)
def test_activations(call, shape, seed):
    operator, *arguments = call
    agree(operator, reals(shape, seed), *arguments)
    agree(operator, 10 * reals(shape, seed), *arguments)
    agree(operator, reals(shape, seed, torch.float16), *arguments)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("operator", ["relu", "relu6", "hardtanh", "hardsigmoid", "leaky_relu"])
def test_activations_that_bound_numbers_keep_nan(operator, value):
    agree(getattr(ATEN, operator).default, torch.tensor([1.0, value, -2.0], dtype=torch.float64))


@pytest.mark.parametrize("call", BACKWARD, ids=_named(BACKWARD))
@settings(max_examples=15, deadline=None)
@given(shape=SHAPES, seed=SEEDS)
def test_gradients(call, shape, seed):
    operator, *arguments = call
    rtol = 1e-7 if operator is ATEN.hardsigmoid_backward.default else 1e-9  # its sixth is of f32
    agree(operator, reals(shape, seed), reals(shape, seed + 1), *arguments, rtol=rtol)
    agree(operator, reals(shape, seed), 5 * reals(shape, seed + 1), *arguments, rtol=rtol)


@settings(max_examples=20, deadline=None)
@given(SHAPES, SEEDS, st.booleans())
def test_gradients_of_results(shape, seed, result):
    g, x = reals(shape, seed), reals(shape, seed + 1)
    agree(ATEN.elu_backward.default, g, 1.5, 2, 1, result, x)
    z = ATEN.log_sigmoid_forward(x)[1]
    agree(ATEN.log_sigmoid_backward.default, g, x, z)


@settings(max_examples=20, deadline=None)
@given(SHAPES, SEEDS)
def test_gelu_by_tanh(shape, seed):
    x = reals(shape, seed)
    agree(ATEN.gelu.default, x, approximate="tanh")
    agree(ATEN.gelu_backward.default, reals(shape, seed + 1), x, approximate="tanh")


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), SEEDS, st.data())
def test_gated_halves(shape, seed, data):
    dim = data.draw(st.integers(-len(shape), len(shape) - 1))
    whole = list(shape)
    whole[dim] *= 2
    agree(ATEN.glu.default, reals(tuple(whole), seed), dim)
    agree(ATEN.glu_backward.default, reals(tuple(shape), seed), reals(tuple(whole), seed + 1), dim)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), SEEDS, st.booleans())
def test_slopes_of_channels(shape, seed, one):
    x = reals(tuple(shape), seed)
    channels = shape[1] if len(shape) > 1 else 1
    weight = reals((1 if one else channels,), seed + 1)
    agree(ATEN.prelu.default, x, weight)
    agree(ATEN._prelu_kernel.default, x, weight.reshape(-1, *(1 for _ in shape[2:])))
    spread = weight.reshape(-1, *(1 for _ in shape[2:]))
    agree(ATEN._prelu_kernel_backward.default, reals(tuple(shape), seed + 2), x, spread)
