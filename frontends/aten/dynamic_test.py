"""Results whose size depends on data equal PyTorch's, cut by their count."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from frontends.aten.against import agree
from frontends.aten.apply import apply
from frontends.builder import Builder, Meta
from ir.errors import KernelError
from ir.spec import Number

ATEN = torch.ops.aten
SEEDS = st.integers(0, 2**31)
SHAPES = st.lists(st.integers(1, 4), max_size=3)


def whole(shape, seed, count=3):
    torch.manual_seed(seed)
    return torch.randint(count, shape)


@given(SHAPES, st.integers(1, 7), SEEDS)
def test_places_of_what_is_not_zero(shape, size, seed):
    x = whole([2, *shape], seed)
    agree(ATEN.nonzero.default, x)
    agree(ATEN.nonzero.default, x > 1)
    agree(ATEN.nonzero.default, x.double())
    agree(ATEN.nonzero_static.default, x, size=size)
    agree(ATEN.nonzero_static.default, x, size=size, fill_value=5)


@given(SHAPES, st.integers(0, 2), SEEDS)
def test_selected_elements(shape, less, seed):
    x = whole(shape, seed)
    agree(ATEN.masked_select.default, x.double(), whole(shape[less:], seed, 2) > 0)
    agree(ATEN.masked_select.default, x, whole([3, *shape], seed, 2) > 0)


@given(SHAPES, st.integers(0, 2), st.booleans(), st.booleans(), SEEDS)
def test_elements_without_their_repetitions(shape, dim, inverse, counts, seed):
    x = whole(shape, seed)
    agree(ATEN._unique2.default, x, True, inverse, counts)
    agree(ATEN._unique2.default, x.double(), False, inverse, counts)
    agree(ATEN.unique_consecutive.default, x, inverse, counts)
    if shape:
        agree(ATEN.unique_consecutive.default, x > 0, inverse, counts, dim % len(shape))


def test_places_in_a_number_are_refused():
    with pytest.raises(KernelError, match="have no size"):
        agree(ATEN.nonzero.default, torch.tensor(3))


def test_a_result_of_unknown_size_is_no_operand():
    b, sizes = Builder(), (Number(4),)
    x = b.input("x", "f64", sizes)
    (found,) = apply(b, ATEN.nonzero.default, (x,), {}, (Meta("i64", (Number(2), Number(1))),))
    assert b.counts[found.name][1] == 0
    with pytest.raises(KernelError, match="depends on data"):
        apply(b, ATEN.relu.default, (found,), {}, (found.meta,))
    parts = (Meta("i64", (Number(1),)),) * 2
    with pytest.raises(KernelError, match="depends on data"):
        apply(b, ATEN.unbind.int, (found,), {}, parts)
