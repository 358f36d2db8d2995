"""Sorts equal PyTorch's in float64."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from frontends.aten.against import agree, results
from testing.slow import slow

ATEN = torch.ops.aten
SEEDS = st.integers(0, 2**31)
SHAPES = st.lists(st.integers(1, 5), max_size=3)
DIMS = st.integers(0, 2)


def drawn(shape, seed, nans=False):
    """Numbers of which several are equal, some of them NaN."""
    torch.manual_seed(seed)
    x = torch.randint(-3, 4, shape).double()
    return torch.where(torch.rand(shape) < 0.2, torch.nan, x) if nans else x


def distinct(shape, seed):
    torch.manual_seed(seed)
    return torch.randn(shape, dtype=torch.float64)


def of(shape, dim):
    return dim % len(shape) if shape else 0


@given(SHAPES, DIMS, st.booleans(), SEEDS)
def test_order_is_stable_and_nan_comes_last(shape, dim, descending, seed):
    dim = of(shape, dim)
    for x in (drawn(shape, seed, nans=True), drawn(shape, seed).long(), drawn(shape, seed) > 0):
        agree(ATEN.sort.stable, x, stable=True, dim=dim, descending=descending)
        agree(ATEN.argsort.stable, x, stable=True, dim=dim - len(shape), descending=descending)
    agree(ATEN.sort.default, distinct(shape, seed), dim, descending)
    agree(ATEN.argsort.default, distinct(shape, seed), dim, descending)
    if shape:
        agree(ATEN.msort.default, x)


@given(SHAPES, DIMS, st.booleans(), st.integers(0, 9), SEEDS)
def test_the_first_ones_and_the_one_of_a_rank(shape, dim, largest, k, seed):
    dim = of(shape, dim)
    k = 1 + k % (shape[dim] if shape else 1)
    x = distinct(shape, seed)
    agree(ATEN.topk.default, x, k, dim, largest)
    agree(ATEN.kthvalue.default, x, k, dim, largest)
    theirs, ours = results(ATEN.topk.default, drawn(shape, seed, nans=True), k, dim, largest)
    torch.testing.assert_close(torch.tensor(ours[0]), theirs[0], equal_nan=True)


@given(SHAPES, DIMS, st.booleans(), SEEDS)
def test_medians(shape, dim, keepdim, seed):
    dim = of(shape, dim)
    for x in (distinct(shape, seed), drawn(shape, seed, nans=True)):
        agree(ATEN.median.default, x)
        agree(ATEN.nanmedian.default, x)
    agree(ATEN.median.dim, distinct(shape, seed), dim, keepdim)
    agree(ATEN.nanmedian.dim, distinct(shape, seed), dim, keepdim)
    x = torch.where(torch.rand(shape) < 0.3, torch.nan, distinct(shape, seed))
    agree(ATEN.median.dim, x, dim, keepdim)
    theirs, ours = results(ATEN.nanmedian.dim, x, dim, keepdim)
    torch.testing.assert_close(torch.tensor(ours[0]), theirs[0], equal_nan=True)
    agree(ATEN.median.default, x.nan_to_num().long())


@pytest.mark.parametrize(
    "kind", ["linear", *map(slow, ["lower", "higher"]), "nearest", slow("midpoint")]
)
@given(SHAPES, DIMS, st.booleans(), st.integers(0, 3), SEEDS)
def test_quantiles(kind, shape, dim, keepdim, count, seed):
    dim = of(shape, dim) if seed % 4 else None
    x = drawn(shape, seed, nans=seed % 3 == 0)
    q = torch.rand(count + 1, dtype=torch.float64)
    for some in (q, q[0], torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64)):
        agree(ATEN.quantile.default, x, some, dim, keepdim, interpolation=kind)
        agree(ATEN.nanquantile.default, x, some, dim, keepdim, interpolation=kind)
    agree(ATEN.quantile.scalar, x, 0.3, dim, keepdim, interpolation=kind)
