"""Searches equal PyTorch's in float64."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from frontends.aten.against import agree

ATEN = torch.ops.aten
SEEDS = st.integers(0, 2**31)
SHAPES = st.lists(st.integers(1, 4), max_size=3)
FLAGS = st.booleans()


def drawn(shape, seed):
    torch.manual_seed(seed)
    return torch.randint(-3, 4, shape)


@given(SHAPES, st.integers(1, 6), FLAGS, FLAGS, SEEDS)
def test_values_among_borders(shape, count, right, short, seed):
    borders = drawn([count], seed).sort().values
    values = drawn(shape, seed)
    for dtype in (torch.float64, torch.int64):
        some = (values.to(dtype), borders.to(dtype))
        agree(ATEN.bucketize.Tensor, *some, out_int32=short, right=right)
        agree(ATEN.searchsorted.Tensor, *some[::-1], out_int32=short, right=right)
    agree(ATEN.bucketize.Tensor, values.double() / 0, borders.double(), right=right)
    agree(ATEN.bucketize.Scalar, 1, borders, right=right)
    agree(ATEN.searchsorted.Scalar, borders.double(), 1.5, side="right" if right else "left")


@given(SHAPES, st.integers(1, 5), st.integers(1, 4), FLAGS, SEEDS)
def test_values_among_borders_of_their_own_and_in_another_order(shape, count, many, right, seed):
    borders = drawn([*shape, count], seed).double()
    sorter = borders.argsort(-1)
    values = drawn([*shape, many], seed + 1).double()
    agree(ATEN.searchsorted.Tensor, borders, values, right=right, sorter=sorter)
    agree(ATEN.searchsorted.Tensor, borders.sort(-1).values, values, right=right)


@given(SHAPES, SHAPES, FLAGS, SEEDS)
def test_values_among_others(shape, others, invert, seed):
    x, y = drawn(shape, seed), drawn(others, seed + 1)
    agree(ATEN.isin.Tensor_Tensor, x, y, invert=invert)
    agree(ATEN.isin.Tensor_Tensor, x.double(), y.double(), assume_unique=False, invert=invert)
    agree(ATEN.isin.Tensor_Scalar, x, 2, invert=invert)
    agree(ATEN.isin.Scalar_Tensor, 2, y, invert=invert)


@given(SHAPES, st.integers(1, 6), SEEDS)
def test_histograms(shape, bins, seed):
    torch.manual_seed(seed)
    x = torch.randn(shape, dtype=torch.float64)
    agree(ATEN.histc.default, x, bins)
    agree(ATEN.histc.default, x, bins, -1, 1.5)
    agree(ATEN.histc.default, x, bins, 0.5, 0.5)
    agree(ATEN.histc.default, x * 0, bins)
