"""Embeddings equal PyTorch's in float64."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from frontends.aten.against import agree
from ir.errors import KernelError

ATEN = torch.ops.aten
SEEDS = st.integers(0, 2**31)


@given(st.lists(st.integers(1, 4), max_size=3), st.integers(1, 4), st.integers(1, 3), SEEDS)
def test_rows_are_looked_up_and_gradients_added(shape, rows, width, seed):
    torch.manual_seed(seed)
    weight = torch.randn(rows, width, dtype=torch.float64)
    indices = torch.randint(rows, shape)
    grad = torch.randn(*shape, width, dtype=torch.float64)
    agree(ATEN.embedding.default, weight, indices)
    agree(ATEN.embedding.default, weight, indices.int(), 0)
    for kind in (1.0, 2.0, float("inf")):
        agree(ATEN.embedding_renorm.default, weight, indices, 1.0, kind)
    for padding in (-1, 0):
        for scaled in (False, True):
            args = (grad, indices, rows, padding, scaled)
            agree(ATEN.embedding_dense_backward.default, *args)
            agree(ATEN.embedding_backward.default, *args, False)


@given(st.integers(0, 2), st.integers(1, 7), st.integers(1, 5), st.booleans(), SEEDS)
def test_bags_are_reduced_over_segments(mode, entries, bags, last, seed):
    torch.manual_seed(seed)
    weight = torch.randn(4, 3, dtype=torch.float64)
    indices = torch.randint(4, (entries,))
    offsets = torch.sort(torch.randint(entries + 1, (bags + last,))).values
    offsets[0] = 0
    if last:
        offsets[-1] = entries
    for padding in (-1, 2):
        args = (weight, indices, offsets, False, mode, False, None, last, padding)
        agree(ATEN._embedding_bag.default, *args)
        agree(ATEN._embedding_bag_forward_only.default, *args)
    if mode == 0:
        scales = torch.randn(entries, dtype=torch.float64)
        agree(ATEN._embedding_bag.default, weight, indices, offsets, False, 0, False, scales, last)


def test_sparse_gradients_are_refused():
    grad, indices = torch.randn(2, 3), torch.tensor([0, 1])
    with pytest.raises(KernelError, match="sparse"):
        agree(ATEN.embedding_backward.default, grad, indices, 4, -1, False, True)
