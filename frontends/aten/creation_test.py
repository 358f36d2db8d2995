"""Tensors that are created equal PyTorch's."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from frontends.aten.against import agree, results
from frontends.aten.arguments import SHAPES, numbered

ATEN = torch.ops.aten
DTYPES = st.sampled_from(
    (torch.float64, torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.bool)
)
MANY = settings(max_examples=40, deadline=None)


@MANY
@given(SHAPES, DTYPES, st.integers(0, 5))
def test_constants(shape, dtype, value):
    x = numbered(shape, dtype)
    for operator in (ATEN.zeros, ATEN.ones):
        agree(operator.default, shape, dtype=dtype)
    for operator in (ATEN.zeros_like, ATEN.ones_like):
        agree(operator.default, x)
    for operator in (ATEN.new_zeros, ATEN.new_ones):
        agree(operator.default, x, shape[1:])
    agree(ATEN.full.default, shape, value, dtype=dtype)
    agree(ATEN.full_like.default, x, value)
    agree(ATEN.new_full.default, x, [2, *shape], value)
    agree(ATEN.fill.Scalar, x, value)
    agree(ATEN.fill.Tensor, x, torch.tensor(value))
    agree(ATEN.scalar_tensor.default, value, dtype=dtype)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 0.1])
def test_constants_need_not_be_whole(value):
    agree(ATEN.full.default, [2, 3], value, dtype=torch.float64)
    agree(ATEN.fill.Scalar, torch.zeros(3), value)


@MANY
@given(st.integers(-6, 6), st.integers(1, 9), st.integers(1, 4), DTYPES)
def test_numbers_in_order(start, count, step, dtype):
    end = start + count
    agree(ATEN.arange.default, count)
    agree(ATEN.arange.start, start, end)
    agree(ATEN.arange.start_step, start, end, step)
    agree(ATEN.arange.start_step, end, start, -step)
    agree(ATEN.arange.start_step, 2**33, 2**33 + count, step)
    agree(ATEN.arange.start_step, start, end, 0.3 * step, dtype=torch.float64)
    if dtype not in (torch.bool, torch.uint8):
        agree(ATEN.arange.start_step, start, end, step, dtype=dtype)


@MANY
@given(st.floats(-5, 5), st.floats(-5, 5), st.integers(1, 9))
def test_equal_steps(start, end, steps):
    agree(ATEN.linspace.default, start, end, steps, dtype=torch.float64)
    agree(ATEN.linspace.default, int(start), int(end), steps, dtype=torch.float64)
    agree(ATEN.linspace.default, start, end, steps)
    ends = torch.tensor(start).double(), torch.tensor(end).double()
    agree(ATEN.linspace.Tensor_Tensor, *ends, steps, dtype=torch.float64)
    agree(ATEN.linspace.Tensor_Scalar, ends[0], 2, steps, dtype=torch.float64)
    agree(ATEN.logspace.default, start, end, steps, 2.0, dtype=torch.float64)


@MANY
@given(st.integers(1, 5), st.integers(1, 5), DTYPES)
def test_unit_matrices(n, m, dtype):
    agree(ATEN.eye.default, n, dtype=dtype)
    agree(ATEN.eye.m, n, m, dtype=dtype)


def test_what_is_empty_has_a_shape():
    x = numbered((2, 3))
    for call in ((ATEN.empty.memory_format, [2, 3]), (ATEN.empty_like.default, x)):
        (theirs,), (ours,) = results(*call)
        assert ours.shape == theirs.shape and not ours.any()
