"""Sizes, bounds and constants as values."""

import pytest

from backends.gpu import values
from backends.gpu.text import scalar_text
from ir.spec import Apply, Index, Number, Size

M, N = Size("M"), Size("N")


@pytest.mark.parametrize(
    ("dtype", "least", "most"),
    [
        ("i32", -(2**31), 2**31 - 1),
        ("i64", -(2**63), 2**63 - 1),
        ("b8", True, True),
        ("f32", -float("inf"), float("inf")),
    ],
)
def test_an_infinite_constant_is_the_end_of_its_dtype(dtype, least, most):
    assert values.typed(-float("inf"), dtype) == Number(least)
    assert values.typed(float("inf"), dtype) == Number(most)


def test_a_constant_has_the_type_of_its_dtype():
    assert values.typed(1, "f16") == Number(1.0)
    assert values.typed(1.0, "i32") == Number(1)


def test_a_sum_leaves_zeros_out_and_subtracts():
    found = values.total([Number(0), N, Number(-1)])
    assert values.signed(found) == Apply("sub", (N, Number(1)))
    assert values.total([Number(0)]) == values.total([]) == Number(0)


def test_a_bound_that_moves_is_settled_where_it_ends_at_the_latest():
    moving = Apply("add", (Index("m"), Number(16)))
    assert values.settled(Apply("minimum", (N, moving))) == N
    assert values.settled(Apply("minimum", (moving, N))) == N
    assert values.settled(moving) == moving
    assert values.moves(moving) and not values.moves(N)


@pytest.mark.parametrize("inner", ["add", "sub"])
def test_a_sum_that_begins_below_zero_is_subtracted(inner):
    found = values.signed(Apply("add", (M, Apply(inner, (Number(-3), N)))))
    assert scalar_text(found) == f"((M - 3) {'+' if inner == 'add' else '-'} N)"


def test_a_product_of_nothing_is_one():
    assert values.product([]) == Number(1)
    assert values.product([M, N]) == values.times(M, N)
    assert values.scaled(M, 1) == M and values.scaled(M, 2) == values.times(M, Number(2))
