"""Rounding agrees with PyTorch's, ties to even, and keeps infinities and NaN."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ir.reference.rounding import BITS, round_bits, round_to

KINDS = {
    "bf16": torch.bfloat16,
    "f16": torch.float16,
    "f32": torch.float32,
    "f8e4m3": torch.float8_e4m3fn,
    "f8e5m2": torch.float8_e5m2,
    "f8e8m0": torch.float8_e8m0fnu,
}
SINGLES = st.lists(st.floats(width=32), min_size=1, max_size=20)


@pytest.mark.parametrize("dtype", KINDS)
@given(values=SINGLES)
def test_agrees_with_pytorch(dtype, values):
    array = np.array(values, np.float32)
    expected = torch.from_numpy(array).to(KINDS[dtype]).to(torch.float64).numpy()
    np.testing.assert_array_equal(round_to(array, dtype).astype(np.float64), expected)


@pytest.mark.parametrize("dtype", BITS)
@given(values=st.lists(st.floats(-6e4, 6e4, width=32), min_size=1, max_size=20))
def test_significant_bits_are_those_of_the_dtype(dtype, values):
    array = np.array([v for v in values if abs(v) > 1e-4] or [1.0])
    expected = round_to(array, dtype).astype(np.float64)
    np.testing.assert_array_equal(round_bits(array, BITS[dtype]), expected)


@pytest.mark.parametrize("dtype", ["f8e4m3", "f8e5m2"])
def test_floats_of_8_bits_agree_with_pytorch_at_all_values_of_16(dtype):
    """All f16 values: ties, subnormal numbers, what overflows, infinities, NaN, signed zeros."""
    every = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)
    expected = torch.from_numpy(every).to(KINDS[dtype]).float().numpy()
    got = round_to(every, dtype)
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(np.signbit(got[every == 0]), np.signbit(every[every == 0]))


def test_scales_agree_with_pytorch_at_every_exponent():
    """Of each exponent and sign: ties, what is just below and above, the ends; infinities and NaN."""
    rest = np.array([0, 1, 0x3FFFFF, 0x400000, 0x400001, 0x600000, 0x7FFFFF], np.uint32)
    upper = np.arange(512, dtype=np.uint32)[:, None] << 23
    every = (upper | rest).astype(np.uint32).view(np.float32).reshape(-1)
    scales = torch.from_numpy(every).to(torch.float8_e8m0fnu)
    np.testing.assert_array_equal(round_to(every, "f8e8m0"), scales.float().numpy())


def test_significant_bits_keep_the_range():
    large, *others = round_bits(np.array([1e30, -np.inf, 0.0]), 11)
    assert others == [-np.inf, 0.0]
    assert abs(large / 1e30 - 1) < 2**-11


def test_integers_and_truth_values_are_held_as_such():
    assert round_to(np.array([1.0, 0.0]), "b8").tolist() == [True, False]
    assert round_to(np.array([3]), "i32").dtype == np.int32


@given(values=SINGLES)
def test_tf32_has_ten_bits_of_fraction_and_the_range_of_f32(values):
    array = np.array(values, np.float32)
    rounded = round_to(array, "tf32")
    assert not (rounded.view(np.uint32)[~np.isnan(rounded)] & 0x1FFF).any()
    finite = np.isfinite(rounded) & np.isfinite(array) & (np.abs(array) > 1e-30)
    rounded, array = rounded[finite], array[finite]
    assert (np.abs(rounded - array) <= 2.0**-11 * np.abs(array)).all()


def test_tf32_breaks_ties_to_even():
    ties = np.array([1 + 2**-11, 1 + 3 * 2**-11, -1 - 2**-11, np.inf], np.float32)
    assert round_to(ties, "tf32").tolist() == [1.0, 1 + 2**-9, -1.0, np.inf]
