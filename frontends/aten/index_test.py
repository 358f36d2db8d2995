"""Gathers equal PyTorch's in float64."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from frontends.aten.against import agree
from ir.errors import KernelError

ATEN = torch.ops.aten
SEEDS = st.integers(0, 2**31)
SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=3)


def drawn(shape, seed):
    torch.manual_seed(seed)
    return torch.randn(shape, dtype=torch.float64)


@given(SHAPES, st.integers(-3, 2), st.integers(1, 5), SEEDS)
def test_elements_are_read_along_a_dimension(shape, dim, count, seed):
    x, dim = drawn(shape, seed), max(-len(shape), min(dim, len(shape) - 1))
    size = shape[dim]
    places = [min(n, 3) for n in shape]
    places[dim] = count
    agree(ATEN.gather.default, x, dim, torch.randint(size, places))
    places = torch.randint(size, [1 if d != dim % len(shape) else count for d in range(x.ndim)])
    agree(ATEN.take_along_dim.default, x, places, dim)
    agree(ATEN.index_select.default, x, dim, torch.randint(size, (count,)))
    agree(ATEN.select.int, x, dim, seed % size)
    agree(ATEN.select.int, x, dim, -1 - seed % size)


@given(st.lists(st.integers(1, 4), max_size=3), st.lists(st.integers(1, 3), max_size=2), SEEDS)
def test_flat_places_count_from_the_end_too(shape, found, seed):
    x = drawn(shape, seed)
    size = x.numel()
    agree(ATEN.take.default, x, torch.randint(-size, size, found))
    agree(ATEN.take_along_dim.default, x, torch.randint(size, [3]))


def test_numbers_are_lines_of_one_element():
    x, zero = torch.tensor(2.0), torch.tensor(0)
    agree(ATEN.gather.default, x, 0, zero)
    agree(ATEN.gather.default, x, 0, torch.zeros(3, dtype=torch.int64))
    agree(ATEN.gather.default, x.reshape(1), 0, zero)
    agree(ATEN.index_select.default, x, 0, zero)
    agree(ATEN.index_select.default, drawn((3, 2), 0), 1, zero)


@given(st.data(), SEEDS)
def test_indices_are_broadcast_and_stand_where_pytorch_puts_them(data, seed):
    shape = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    x = drawn(shape, seed)
    sizes = data.draw(st.sampled_from([(), (2,), (3, 2)]))
    indices = []
    for size in shape[: data.draw(st.integers(1, len(shape)))]:
        kind = data.draw(st.sampled_from(["none", "all", "last", "one"]))
        own = {"none": None, "all": sizes, "last": sizes[-1:], "one": (1,) * len(sizes)}[kind]
        indices.append(None if own is None else torch.randint(-size, size, own))
    if any(i is not None for i in indices):
        agree(ATEN.index.Tensor, x, indices)


@given(st.integers(1, 3), st.integers(1, 4), st.integers(0, 2), SEEDS)
def test_masks_choose_elements(rank, size, before, seed):
    x = drawn((2,) * before + (size,) * rank + (3,), seed)
    mask = torch.rand((size,) * rank) < 0.5
    agree(ATEN.index.Tensor, x, [None] * before + [mask])


def test_a_mask_and_more_are_refused():
    mask = torch.tensor([True, False])
    with pytest.raises(KernelError, match="mask"):
        agree(ATEN.index.Tensor, drawn((2, 1), 0), [mask, torch.tensor([0])])


@given(st.lists(st.integers(1, 4), max_size=3), SEEDS)
def test_masks_fill_and_scatter(shape, seed):
    x = drawn(shape, seed)
    mask = torch.rand(shape[1:]) < 0.5
    agree(ATEN.masked_fill.Scalar, x, mask, -float("inf"))
    agree(ATEN.masked_fill.Scalar, x.long(), mask, 3)
    agree(ATEN.masked_fill.Tensor, x, mask, torch.tensor(2))
    agree(ATEN.masked_scatter.default, x, mask, drawn((x.numel(), 2), seed))
    agree(ATEN.one_hot.default, torch.randint(3, shape), 4)
