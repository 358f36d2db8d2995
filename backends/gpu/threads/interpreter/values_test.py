"""Values convert between dtypes as the reference says, and operands meet as the language says."""

from __future__ import annotations

import numpy as np
import pytest

from backends.gpu.threads.interpreter.values import (
    common,
    converted,
    function_of,
    held_as,
    joining,
    power,
    unknown,
)
from ir.functions import POINTWISE
from ir.reference.rounding import round_to

FLOATS = np.array([0.0, -1.5, 2.5, 3.14159, 70000.0, -3e9, np.inf, np.nan], np.float32)
WHOLE = np.array([0, -1, 127, 128, 300, -40000, 2**31 - 1], np.int32)


@pytest.mark.parametrize("dtype", ("f32", "tf32", "f16", "bf16", "i32", "i64", "i16", "i8", "u8"))
def test_conversions_are_those_of_the_reference(dtype):
    for source, values in (("f32", FLOATS), ("i32", WHOLE)):
        with np.errstate(all="ignore"):
            found = converted(values, source, dtype)
            wanted = round_to(values, "i64" if dtype == "i64" else dtype)
        assert found.dtype == held_as(dtype)
        assert np.array_equal(found, wanted.astype(held_as(dtype)), equal_nan=True)
        with np.errstate(all="ignore"):  # numbers convert as arrays do
            single = converted(values[3], source, dtype)
        assert np.ndim(single) == 0 and single == found[3]


def test_booleans_are_what_is_not_0():
    assert converted(FLOATS, "f32", "b8").tolist() == [False] + 7 * [True]
    assert converted(np.array([True, False]), "b8", "f32").tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    "function, dtypes, met",
    [
        ("add", ["i32", "i64"], "i64"),
        ("add", ["b8", "b8"], "i32"),
        ("and", ["b8", "b8"], "b8"),
        ("mul", ["bf16", "bf16"], "f32"),
        ("mul", ["i8", "f32"], "f32"),
        ("exp", ["i32"], "f32"),
        ("quotient", ["i32", "i32"], "i32"),
    ],
)
def test_operands_meet(function, dtypes, met):
    assert common(dtypes, function) == met


def test_every_function_of_the_language_has_a_form():
    assert all(callable(function_of(name)) for name in POINTWISE)
    a, b = np.array([7, -7, 7, -7], np.int32), np.array([2, 2, -2, -2], np.int32)
    assert function_of("quotient")(a, b).tolist() == [3, -3, -3, 3]  # toward zero
    assert function_of("remainder")(a, b).tolist() == [1, -1, 1, -1]
    assert function_of("uniform")(np.int64(3), np.arange(4)).dtype == np.float32


def test_powers_of_two_stand_for_exponentials():
    values = np.linspace(-4, 4, 9, dtype=np.float32)
    found = power(values, np.float32(1.0), np.float32(0.5))
    np.testing.assert_allclose(found, np.exp(values * 0.5 - 1), rtol=1e-6)
    assert power(np.float32(-np.inf), np.float32(0.0), None) == 0


def test_reductions_say_what_nan_does():
    a, b = np.float32(np.nan), np.float32(1)
    assert joining("max", False)(a, b) == 1 and np.isnan(joining("max", True)(a, b))


def test_what_is_not_there_is_a_bad_value():
    assert np.isnan(unknown("bf16")) and unknown("i32") == -1_234_567
