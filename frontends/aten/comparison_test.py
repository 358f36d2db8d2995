"""Comparisons, tests, logic and bits equal PyTorch's."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from frontends.aten.against import agree
from frontends.aten.arguments import INTEGERS, SEEDS, SHAPES, integers, reals, truths

ATEN = torch.ops.aten
COMPARED = (ATEN.eq, ATEN.ne, ATEN.lt, ATEN.le, ATEN.gt, ATEN.ge)


@settings(max_examples=40, deadline=None)
@given(SHAPES, SEEDS, st.sampled_from(INTEGERS))
def test_comparisons(shape, seed, dtype):
    x, y = reals(shape, seed, special=True), reals(shape[1:], seed + 1, special=True)
    whole, few = integers(shape, seed, dtype, -2, 2), integers(shape[1:], seed + 1, dtype, -2, 2)
    for operator in COMPARED:
        agree(operator.Tensor, x, y)
        agree(operator.Tensor, whole, few)
        agree(operator.Tensor, whole, y)
        agree(operator.Scalar, x, 0.5)
        agree(operator.Scalar, whole, 1)
        agree(operator.Scalar, whole, 0.5)
        agree(operator.Tensor, truths(shape, seed), truths(shape, seed + 1))


@settings(max_examples=40, deadline=None)
@given(SHAPES, SEEDS)
def test_logic_takes_any_numbers(shape, seed):
    operands = (
        reals(shape, seed, special=True),
        integers(shape, seed, low=-1, high=1),
        truths(shape, seed),
    )
    for x in operands:
        agree(ATEN.logical_not.default, x)
        for y in operands:
            for operator in (ATEN.logical_and, ATEN.logical_or, ATEN.logical_xor):
                agree(operator.default, x, y)


@settings(max_examples=40, deadline=None)
@given(SHAPES, SEEDS, st.sampled_from((torch.bool, *INTEGERS)))
def test_bits(shape, seed, dtype):
    x, y = integers(shape, seed, dtype), integers(shape[1:], seed + 1, dtype)
    agree(ATEN.bitwise_not.default, x)
    for operator in (ATEN.bitwise_and, ATEN.bitwise_or, ATEN.bitwise_xor):
        agree(operator.Tensor, x, y)
        agree(operator.Scalar, x, dtype == torch.bool or 5)
    if dtype != torch.bool:
        agree(ATEN.bitwise_left_shift.Tensor, x, integers(shape, seed, dtype, 0, 3))
        agree(ATEN.bitwise_right_shift.Tensor_Scalar, x, 2)


@settings(max_examples=30, deadline=None)
@given(SHAPES, SEEDS)
def test_tests_of_numbers(shape, seed):
    x = reals(shape, seed, special=True)
    for operator in (ATEN.isnan.default, ATEN.isinf.default, ATEN.isfinite.default):
        agree(operator, x)
        agree(operator, x.half())
        agree(operator, integers(shape, seed))


@settings(max_examples=30, deadline=None)
@given(SHAPES, SEEDS, st.booleans())
def test_what_is_close(shape, seed, equal_nan):
    x, y = reals(shape, seed, special=True), reals(shape, seed + 1, special=True)
    y = torch.where(truths(shape, seed), x * (1 + 1e-6), y)
    agree(ATEN.isclose.default, x, y, equal_nan=equal_nan)
    agree(ATEN.isclose.default, x, y, 0.3, 0.1)
    agree(ATEN.isclose.default, integers(shape, seed), integers(shape, seed + 1), 0.5, 1.0)
