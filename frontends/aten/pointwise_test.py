"""Pointwise operators equal PyTorch's in float64."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from frontends.aten.against import agree

ATEN = torch.ops.aten


@given(st.lists(st.integers(1, 4), max_size=4), st.integers(0, 2**31))
def test_sums_are_broadcast(shape, seed):
    torch.manual_seed(seed)
    x, y = torch.randn(shape, dtype=torch.float64), torch.randn(shape[1:], dtype=torch.float64)
    agree(ATEN.add.Tensor, x, y)
    agree(ATEN.add.Tensor, x, y, alpha=2.5)
    agree(ATEN.add.Tensor, x, 3)
    agree(ATEN.relu.default, x)
