"""Views equal PyTorch's."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from frontends.aten.against import agree
from frontends.aten.arguments import numbered
from ir.errors import KernelError

ATEN = torch.ops.aten
SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)
DTYPES = st.sampled_from((torch.float64, torch.float16, torch.int64, torch.bool))
MANY = settings(max_examples=40, deadline=None)


def _dim(data, x):
    return data.draw(st.integers(-x.dim(), x.dim() - 1))


@MANY
@given(SHAPES, DTYPES, st.data())
def test_orders_of_dimensions(shape, dtype, data):
    x = numbered(shape, dtype)
    order = data.draw(st.permutations(range(len(shape))))
    agree(ATEN.permute.default, x, [d - len(shape) * (d % 2) for d in order])
    one, other = _dim(data, x), _dim(data, x)
    agree(ATEN.transpose.int, x, one, other)
    agree(ATEN.movedim.int, x, one, other)
    agree(ATEN.movedim.intlist, x, list(range(len(shape))), order)
    if x.dim() <= 2:
        agree(ATEN.t.default, x)
    agree(ATEN.flip.default, x, order[: data.draw(st.integers(0, len(shape)))])


@MANY
@given(SHAPES, DTYPES, st.data())
def test_other_shapes_of_the_same_elements(shape, dtype, data):
    x = numbered(shape, dtype)
    flat = [x.numel()]
    for operator in (ATEN.view.default, ATEN._unsafe_view.default, ATEN.reshape.default):
        agree(operator, x, flat)
        agree(operator, x, [1, *reversed(shape), 1])
    agree(ATEN.view_copy.default, x, [-1])
    agree(ATEN.flatten.using_ints, x, 0, -1)
    dim = _dim(data, x)
    agree(ATEN.squeeze.default, x)
    agree(ATEN.squeeze.dim, x, dim)
    agree(ATEN.squeeze.dims, x, [dim])
    agree(ATEN.unsqueeze.default, x, dim)
    agree(ATEN.expand.default, x.unsqueeze(dim), [3, *x.unsqueeze(dim).shape])
    agree(ATEN.expand.default, x[:, None], [shape[0], 3, *shape[1:]])


@MANY
@given(SHAPES, DTYPES, st.data())
def test_parts(shape, dtype, data):
    x = numbered(shape, dtype)
    dim = _dim(data, x)
    size = shape[dim]
    start = data.draw(st.integers(-size - 2, size - 1))
    step = data.draw(st.integers(1, 3))
    end = data.draw(st.integers(max(start + size if start < 0 else start, 0) + 1, 9))
    agree(ATEN.slice.Tensor, x, dim, start, end, step)
    agree(ATEN.slice.Tensor, x, dim, None, None, step)
    agree(ATEN.slice.Tensor, x, dim, -1)
    agree(ATEN.select.int, x, dim, data.draw(st.integers(-size, size - 1)))
    first = data.draw(st.integers(0, size - 1))
    agree(ATEN.narrow.default, x, dim, first, size - first)
    width = data.draw(st.integers(1, size))
    agree(ATEN.unfold.default, x, dim, width, step)


@MANY
@given(SHAPES, DTYPES, st.data())
def test_rolling(shape, dtype, data):
    x = numbered(shape, dtype)
    dims = data.draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, max_size=3))
    shifts = [data.draw(st.integers(-6, 6)) for _ in dims]
    agree(ATEN.roll.default, x, shifts, dims)
    agree(ATEN.roll.default, x, shifts[:1])


@MANY
@given(st.integers(1, 2), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3))
def test_shuffles(n, r, h, w):
    agree(ATEN.pixel_shuffle.default, numbered((n, 2 * r * r, h, w)), r)
    agree(ATEN.pixel_unshuffle.default, numbered((n, 2, h * r, w * r)), r)
    agree(ATEN.channel_shuffle.default, numbered((n, 2 * r, h, w)), r)


@MANY
@given(SHAPES, st.data())
def test_strides(shape, data):
    x = numbered(shape)
    order = data.draw(st.permutations(range(len(shape))))
    other = x.permute(order)
    agree(ATEN.as_strided.default, x, list(other.shape), list(other.stride()))
    half = x.reshape(-1)[x.numel() // 2 :]
    agree(ATEN.as_strided.default, x, [len(half)], [1], x.numel() // 2)
    agree(ATEN.as_strided.default, x, [2, x.numel()], [0, 1])


def test_strides_stay_within_the_tensor():
    long = torch.zeros(20)
    with pytest.raises(KernelError, match="reads place 9 of a tensor of 6"):
        agree(ATEN.as_strided.default, long[:6], [10], [1])


@MANY
@given(SHAPES, DTYPES)
def test_copies(shape, dtype):
    x = numbered(shape, dtype)
    for operator in (ATEN.alias, ATEN.clone, ATEN.contiguous, ATEN.detach, ATEN.lift_fresh_copy):
        agree(operator.default, x)
    agree(ATEN.copy.default, x.double(), x[:1])


def test_bits_are_not_seen_as_another_dtype():
    with pytest.raises(KernelError, match="seen as i32"):
        agree(ATEN.view.dtype, torch.ones(3), torch.int32)


def test_complex_numbers_are_held_as_two():
    x = numbered((3, 2))
    agree(ATEN.view_as_complex.default, x)
    agree(ATEN.view_as_real.default, torch.view_as_complex(x))
