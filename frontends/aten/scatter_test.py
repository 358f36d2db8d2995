"""Scatters equal PyTorch's in float64."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from frontends.aten.against import agree
from ir.errors import KernelError

ATEN = torch.ops.aten
SEEDS = st.integers(0, 2**31)
SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=3)
DTYPES = st.sampled_from([torch.float64, torch.int64, torch.int32])


def drawn(shape, seed, dtype=torch.float64):
    torch.manual_seed(seed)
    return (torch.randn(shape, dtype=torch.float64) * 4).to(dtype)


def updates(shape, dim, count, seed, smaller):
    """An index, and a source that is larger in all dimensions."""
    torch.manual_seed(seed)
    sizes = [max(1, n - smaller) for n in shape]
    sizes[dim] = count
    index = torch.randint(shape[dim], sizes)
    return index, (torch.randn([n + smaller for n in sizes], dtype=torch.float64) * 4)


@given(SHAPES, st.integers(0, 2), st.integers(1, 5), st.integers(0, 1), DTYPES, SEEDS)
def test_updates_along_a_dimension(shape, dim, count, smaller, dtype, seed):
    dim %= len(shape)
    x = drawn(shape, seed, dtype)
    index, source = updates(shape, dim, count, seed, smaller)
    source = source.to(dtype)
    agree(ATEN.scatter.src, x, dim, index, source)
    agree(ATEN.scatter.value, x, dim, index, 3)
    agree(ATEN.scatter_add.default, x, dim - len(shape), index, source)
    for reduce in ("add", "multiply"):
        agree(ATEN.scatter.reduce, x, dim, index, source, reduce=reduce)
        agree(ATEN.scatter.value_reduce, x, dim, index, 2, reduce=reduce)


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@given(SHAPES, st.integers(0, 2), st.integers(1, 5), st.integers(0, 1), DTYPES, SEEDS)
def test_updates_are_reduced(reduce, shape, dim, count, smaller, dtype, seed):
    dim %= len(shape)
    x = drawn(shape, seed, dtype)
    index, source = updates(shape, dim, count, seed, smaller)
    source = source.to(dtype)
    for own in (True, False):
        agree(ATEN.scatter_reduce.two, x, dim, index, source, reduce, include_self=own)


@given(SHAPES, st.integers(0, 2), st.integers(1, 5), st.integers(0, 1), SEEDS)
def test_gradients_of_gathers(shape, dim, count, smaller, seed):
    dim %= len(shape)
    x = drawn(shape, seed)
    index, _ = updates(shape, dim, count, seed, smaller)
    agree(ATEN.gather_backward.default, drawn(index.shape, seed), x, dim, index, False)
    one = torch.tensor(0)
    agree(ATEN.gather_backward.default, drawn([], seed), drawn([], seed), 0, one, False)


def test_numbers_are_lines_of_one_element():
    x, zero, y = torch.tensor(2.0), torch.tensor(0), torch.tensor(3.0)
    agree(ATEN.scatter.src, x, 0, zero, y)
    agree(ATEN.scatter.value, x, 0, zero, 5)
    agree(ATEN.scatter_add.default, x, 0, zero, y)
    agree(ATEN.index_add.default, x, 0, zero, y, alpha=2)
    agree(ATEN.index_copy.default, x, 0, zero, y)
    agree(ATEN.index_fill.int_Scalar, x, 0, zero, 5)


@given(SHAPES, st.integers(0, 2), st.integers(1, 5), DTYPES, SEEDS)
def test_slices_are_added_copied_and_filled(shape, dim, count, dtype, seed):
    dim %= len(shape)
    x = drawn(shape, seed, dtype)
    size = shape[dim]
    index = torch.randint(size, (count,))
    sizes = [count if d == dim else n for d, n in enumerate(shape)]
    source = drawn(sizes, seed + 1, dtype)
    agree(ATEN.index_add.default, x, dim, index, source)
    agree(ATEN.index_add.default, x, dim, index, source, alpha=2)
    agree(ATEN.index_copy.default, x, dim, index, source)
    agree(ATEN.index_fill.int_Scalar, x, dim, index - size, 3)
    agree(ATEN.index_fill.int_Tensor, x, dim, index, torch.tensor(2, dtype=dtype))


@given(st.data(), SEEDS)
def test_values_are_put_at_indices(data, seed):
    shape = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    x = drawn(shape, seed)
    sizes = data.draw(st.sampled_from([(), (2,), (3, 2)]))
    indices = []
    for size in shape[: data.draw(st.integers(1, len(shape)))]:
        kind = data.draw(st.sampled_from(["none", "all", "last", "one"]))
        own = {"none": None, "all": sizes, "last": sizes[-1:], "one": (1,) * len(sizes)}[kind]
        indices.append(None if own is None else torch.randint(-size, size, own))
    if all(i is None for i in indices):
        return
    values = drawn(x[tuple(slice(None) if i is None else i for i in indices)].shape, seed)
    less = data.draw(st.integers(0, values.ndim))
    values = values[(0,) * less]
    agree(ATEN.index_put.default, x, indices, values, True)
    same = torch.full_like(values, 2.0)  # which of several updates wins is open
    agree(ATEN.index_put.default, x, indices, same)
    agree(ATEN.index_put.default, drawn((5, 2), seed), [torch.randperm(5)], drawn((5, 1), seed))


@given(st.integers(1, 3), st.integers(1, 3), st.integers(0, 2), st.booleans(), SEEDS)
def test_values_are_put_where_a_mask_is_true(rank, size, before, added, seed):
    x = drawn((2,) * before + (size,) * rank + (3,), seed)
    mask = torch.rand((size,) * rank) < 0.5
    indices = [None] * before + [mask]
    count = int(mask.sum())
    agree(ATEN.index_put.default, x, indices, torch.tensor(2.0, dtype=x.dtype), added)
    agree(ATEN.index_put.default, x, indices, drawn(3, seed), added)
    if count:
        agree(ATEN.index_put.default, x, indices, drawn((2,) * before + (count, 3), seed), added)


def test_bins_without_a_number_are_refused():
    with pytest.raises(KernelError, match=r"largest entry says(.|\n)*index_add\(0, x, weights\)"):
        agree(ATEN.bincount.default, torch.tensor([1, 4, 1]))
