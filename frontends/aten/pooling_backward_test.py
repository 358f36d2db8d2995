"""Gradients of mean pooling equal PyTorch's in float64."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from frontends.aten.against import agree

ATEN = torch.ops.aten


@st.composite
def images(draw):
    """The number of dimensions of windows, and an image that holds three of the smallest."""
    torch.manual_seed(draw(st.integers(0, 2**31)))
    rank = draw(st.integers(2, 3))
    sizes = draw(st.lists(st.integers(3, 6), min_size=rank, max_size=rank))
    return rank, torch.randn(2, 1, *sizes, dtype=torch.float64)


@given(
    images(),
    st.tuples(*[st.integers(1, 3)] * 3),
    st.tuples(*[st.integers(1, 3)] * 3),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, 5]),
)
def test_avg_pool(case, kernel, stride, padded, ceil_mode, included, divisor):
    rank, x = case
    padding = [k // 2 if padded else 0 for k in kernel[:rank]]
    how = (list(kernel[:rank]), list(stride[:rank]), padding, ceil_mode, included, divisor)
    grad = torch.randn_like(getattr(ATEN, f"avg_pool{rank}d")(x, *how))
    agree(getattr(ATEN, f"avg_pool{rank}d_backward").default, grad, x, *how)


@given(images(), st.tuples(*[st.integers(1, 7)] * 3))
def test_adaptive_avg_pool(case, made):
    rank, x = case
    grad = torch.randn(2, 1, *made[:rank], dtype=torch.float64)
    agree(getattr(ATEN, f"_adaptive_avg_pool{rank}d_backward").default, grad, x)
