"""Scans equal PyTorch's in float64."""

import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from frontends.aten.against import agree
from frontends.aten.arguments import SEEDS, SHAPES, reals

ATEN = torch.ops.aten


@st.composite
def scans(draw, dtypes):
    shape = draw(st.lists(st.integers(1, 5), max_size=3))
    torch.manual_seed(draw(st.integers(0, 2**31)))
    dtype, dim = draw(st.sampled_from(dtypes)), 0
    if shape:
        dim = draw(st.integers(-len(shape), len(shape) - 1))
    x = torch.randint(-2, 3, shape, dtype=torch.int64).to(dtype)
    return (x + torch.randn(shape, dtype=dtype) if draw(st.booleans()) else x) if (
        dtype.is_floating_point
    ) else x, dim


@given(scans((torch.float64, torch.int64, torch.int32)))
def test_running_sums_and_products(case):
    agree(ATEN.cumsum.default, *case)
    agree(ATEN.cumprod.default, *case)
    agree(ATEN.cumsum.default, *case, dtype=torch.float64)


@given(scans((torch.float64, torch.int64)))
def test_running_extrema_and_their_last_places(case):
    agree(ATEN.cummax.default, *case)
    agree(ATEN.cummin.default, *case)


def test_nan_stays_the_extremum():
    x = torch.tensor([1.0, math.nan, 3.0, math.nan, 2.0], dtype=torch.float64)
    agree(ATEN.cummax.default, x, 0)
    agree(ATEN.cummin.default, x, 0)


@given(SHAPES, SEEDS, st.integers(0, 3), st.sampled_from((torch.float64, torch.bfloat16)))
def test_running_extrema_of_nan_and_infinities(shape, seed, dim, dtype):
    x, dim = reals(shape, seed, dtype, special=True), dim % max(len(shape), 1)
    agree(ATEN.cummax.default, x, dim)
    agree(ATEN.cummin.default, x, dim)


@given(scans((torch.float64,)))
def test_running_log_of_sums_of_exponentials(case):
    x, dim = case
    agree(ATEN.logcumsumexp.default, x * 300, dim)
