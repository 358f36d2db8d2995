"""Distances equal PyTorch's in float64."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from frontends.aten.against import agree

ATEN = torch.ops.aten
SEEDS = st.integers(0, 2**31)
BATCHES = st.lists(st.integers(1, 2), max_size=2)
ROWS = st.integers(1, 4)


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.5, math.inf])
@given(BATCHES, ROWS, ROWS, ROWS, st.booleans(), SEEDS)
def test_distances_of_rows(p, batch, rows, columns, size, keepdim, seed):
    torch.manual_seed(seed)
    x = torch.randn(*batch, rows, size, dtype=torch.float64)
    y = torch.randn(*batch[1:], columns, size, dtype=torch.float64)
    agree(ATEN.cdist.default, x, y, p)
    agree(ATEN._cdist_forward.default, x, x[..., :1, :], p, 2)
    agree(ATEN.pairwise_distance.default, x, y[..., :1, :], p, 1e-6, keepdim)
    if rows > 1:
        agree(ATEN._pdist_forward.default, x.reshape(-1, size), p)
