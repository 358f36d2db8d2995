"""Joins and parts equal PyTorch's."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from frontends.aten.against import agree
from frontends.aten.arguments import SEEDS, integers, numbered, reals
from ir.errors import KernelError

ATEN = torch.ops.aten
SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)
DTYPES = st.sampled_from((torch.float64, torch.float16, torch.int64, torch.int8, torch.bool))
MANY = settings(max_examples=40, deadline=None)


def _dim(data, x):
    return data.draw(st.integers(-x.dim(), x.dim() - 1))


def _with(shape, dim, size):
    made = list(shape)
    made[dim] = size
    return made


def _other(x):
    return (x == 0) if x.dtype == torch.bool else -x


@MANY
@given(SHAPES, DTYPES, DTYPES, st.data())
def test_tensors_are_joined(shape, dtype, other, data):
    x = numbered(shape, dtype)
    dim = _dim(data, x)
    pieces = [x, numbered(_with(shape, dim, 3), other), -x.double()]
    agree(ATEN.cat.default, pieces, dim)
    agree(ATEN.cat.default, pieces[:1], dim)
    agree(ATEN.cat.default, [torch.zeros(0), x, numbered(_with(shape, dim, 1), dtype)], dim)
    agree(ATEN.stack.default, [x, numbered(shape, other)], dim)
    agree(ATEN.stack.default, [x.double()] * 4, dim)
    agree(ATEN.hstack.default, [x, numbered(shape, other)])
    agree(ATEN.vstack.default, [x, numbered(shape, other)])
    agree(ATEN.dstack.default, [x, numbered(shape, other)])
    agree(ATEN.hstack.default, [x.double().sum(), x.double().max()])


@MANY
@given(SHAPES, DTYPES, st.integers(1, 5), st.data())
def test_tensors_are_split(shape, dtype, size, data):
    x = numbered(shape, dtype)
    dim = _dim(data, x)
    agree(ATEN.split.Tensor, x, size, dim)
    agree(ATEN.chunk.default, x, size, dim)
    first = data.draw(st.integers(1, shape[dim]))
    rest = [shape[dim] - first] if shape[dim] > first else []
    agree(ATEN.split_with_sizes.default, x, [first, *rest], dim)
    agree(ATEN.unbind.int, x, dim)


@MANY
@given(SHAPES, DTYPES, st.data())
def test_parts_are_replaced(shape, dtype, data):
    x = numbered(shape, dtype)
    dim = _dim(data, x)
    size = shape[dim]
    index = data.draw(st.integers(-size, size - 1))
    agree(ATEN.select_scatter.default, x, _other(x.select(dim, index)), dim, index)
    agree(ATEN.select_backward.default, x.select(dim, index), shape, dim, index)
    start, step = data.draw(st.integers(-size, size - 1)), data.draw(st.integers(1, 3))
    end = data.draw(st.integers(start % size + 1, 7))
    part = ATEN.slice.Tensor(x, dim, start, end, step)
    agree(ATEN.slice_scatter.default, x, _other(part), dim, start, end, step)
    agree(ATEN.slice_backward.default, part, shape, dim, start, end, step)


@MANY
@given(SHAPES, DTYPES, st.data())
def test_copies_side_by_side(shape, dtype, data):
    x = numbered(shape, dtype)
    counts = [data.draw(st.integers(1, 3)) for _ in shape]
    agree(ATEN.repeat.default, x, counts)
    agree(ATEN.repeat.default, x, [2, *counts])
    agree(ATEN.tile.default, x, counts[1:])
    dim, repeats = _dim(data, x), data.draw(st.integers(1, 3))
    agree(ATEN.repeat_interleave.self_int, x, repeats, dim)
    agree(ATEN.repeat_interleave.self_int, x, repeats)


@MANY
@given(SHAPES, SEEDS, st.data())
def test_elements_as_often_as_a_tensor_says(shape, seed, data):
    x = numbered(shape)
    dim = _dim(data, x)
    repeats = integers((shape[dim],), seed, low=0, high=3)
    repeats[0] = 2
    total = int(repeats.sum())
    if shape[dim] > 1:
        agree(ATEN.repeat_interleave.self_Tensor, x, repeats, dim, output_size=total)
    agree(ATEN.repeat_interleave.self_Tensor, x, torch.tensor([3]), output_size=3 * x.numel())
    agree(ATEN.repeat_interleave.Tensor, repeats, output_size=total)


def test_a_size_that_depends_on_data_is_refused():
    with pytest.raises(KernelError, match="size is not known"):
        agree(ATEN.repeat_interleave.Tensor, torch.ones(3, dtype=torch.int64))


@MANY
@given(SHAPES, SHAPES, SEEDS)
def test_products_of_kronecker(one, other, seed):
    agree(ATEN.kron.default, reals(one[:3], seed), reals(other[:3], seed + 1))
    agree(ATEN.kron.default, integers(one[:2], seed), integers(other[:1], seed + 1))


def test_many_parts_are_chosen_by_halves():
    parts = [torch.full((1, 2), float(n), dtype=torch.float64) for n in range(300)]
    agree(torch.ops.aten.cat.default, parts)
    agree(torch.ops.aten.stack.default, parts, 1)
