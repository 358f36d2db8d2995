"""Pooling equals PyTorch's in float64."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from frontends.aten.against import agree
from frontends.aten.arguments import reals

ATEN = torch.ops.aten


@st.composite
def windows(draw, dilated):
    """A tensor, windows over its last dimensions, and whether there is no batch."""
    torch.manual_seed(draw(st.integers(0, 2**31)))
    rank = draw(st.integers(1, 3))

    def each(low, high):
        return draw(st.lists(st.integers(low, high), min_size=rank, max_size=rank))

    kernel, stride = each(1, 3), draw(st.sampled_from([[], each(1, 3)]))
    padding = [draw(st.integers(0, k // 2)) for k in kernel]
    dilation = each(1, 2) if dilated else [1] * rank
    sizes = [
        max(n, (k - 1) * d + 1 - (p if dilated else 0), d)  # no window lies outside
        for n, k, d, p in zip(each(1, 5), kernel, dilation, padding, strict=True)
    ]
    x = torch.randn(*draw(st.sampled_from([(2, 3), (2,)])), *sizes, dtype=torch.float64)
    return rank, x, kernel, stride, padding, dilation


@given(windows(True), st.booleans())
def test_max_pool(case, ceil_mode):
    rank, x, *how = case
    agree(getattr(ATEN, f"max_pool{rank}d").default, x, *how, ceil_mode)
    if rank == 1:
        return
    operator = getattr(ATEN, f"max_pool{rank}d_with_indices")
    agree(operator.default, x, *how, ceil_mode)
    values, places = operator(x, *how, ceil_mode)
    how[1] = how[1] or how[0]
    back = getattr(ATEN, f"max_pool{rank}d_with_indices_backward").default
    agree(back, torch.randn_like(values), x, *how, ceil_mode, places)


@given(windows(True), st.booleans(), st.integers(0, 2**31))
def test_max_pool_of_nan_and_infinities(case, ceil_mode, seed):
    rank, x, *how = case
    x = reals(x.shape, seed, special=True)
    agree(getattr(ATEN, f"max_pool{rank}d").default, x, *how, ceil_mode)
    if rank > 1:
        agree(getattr(ATEN, f"max_pool{rank}d_with_indices").default, x, *how, ceil_mode)
    agree(getattr(ATEN, f"adaptive_max_pool{rank}d").default, x, [2] * rank)


@pytest.mark.parametrize("value", [-math.inf, math.inf, math.nan])
@pytest.mark.parametrize("dilation", [1, 2])
def test_places_lie_in_the_tensor_where_padding_equals_the_maximum(value, dilation):
    x = torch.full((1, 2, 5, 6), value, dtype=torch.float64)
    agree(ATEN.max_pool2d_with_indices.default, x, [3, 2], [2, 1], [1, 1], [1, dilation], True)
    agree(ATEN.max_pool3d_with_indices.default, x, [1, 3, 3], [1, 2, 2], [0, 1, 1], dilation)
    agree(ATEN.adaptive_max_pool2d.default, x, [2, 4])


def test_places_lie_in_the_tensor_where_padding_equals_the_least_integer():
    x = torch.full((1, 2, 5, 6), torch.iinfo(torch.int64).min)
    agree(ATEN.max_pool2d_with_indices.default, x, [3, 2], [2, 1], [1, 1])


def test_max_pool_of_integers():
    x = torch.randint(-9, 9, (2, 3, 5, 6))
    agree(ATEN.max_pool2d_with_indices.default, x, [3, 2], [2, 2], [1, 1])


@given(windows(False), st.booleans(), st.booleans(), st.sampled_from([None, 1, 7]))
def test_avg_pool(case, ceil_mode, padded, divisor):
    rank, x, kernel, stride, padding, _ = case
    how = [] if rank == 1 else [divisor]
    operator = getattr(ATEN, f"avg_pool{rank}d").default
    agree(operator, x, kernel, stride, padding, ceil_mode, padded, *how)


@given(
    st.lists(st.tuples(st.integers(1, 7), st.integers(1, 5)), min_size=1, max_size=3),
    st.booleans(),
    st.integers(0, 2**31),
)
def test_adaptive_pool(pairs, batched, seed):
    torch.manual_seed(seed)
    rank, sizes, made = len(pairs), [s for s, _ in pairs], [p for _, p in pairs]
    x = torch.randn(*((2, 2) if batched else (2,)), *sizes, dtype=torch.float64)
    agree(getattr(ATEN, f"adaptive_avg_pool{rank}d").default, x, made)
    agree(getattr(ATEN, f"adaptive_max_pool{rank}d").default, x, made)


@pytest.mark.parametrize("operator", [ATEN._adaptive_avg_pool2d, ATEN._adaptive_avg_pool3d])
def test_private_forms(operator):
    count = 2 if operator is ATEN._adaptive_avg_pool2d else 3
    x = torch.randn(2, 3, *([6, 5, 4][:count]), dtype=torch.float64)
    agree(operator.default, x, [3] * count)
