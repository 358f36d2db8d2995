import numpy as np
import pytest

from backends.tolerance import (
    EPSILON,
    FACTOR,
    FINITE,
    LARGEST,
    allowance,
    norm_ratio,
    rms,
    tolerance,
)
from ir.reference.rounding import round_to


@pytest.mark.parametrize("dtype", sorted(EPSILON))
def test_the_table_of_formats_is_that_of_their_rounding(dtype):
    unit = EPSILON[dtype]
    assert round_to(np.array(1 + unit), dtype) == 1 + unit
    assert round_to(np.array(1 + unit / 4), dtype) == 1
    assert np.isfinite(round_to(np.array(LARGEST[dtype]), dtype))
    with np.errstate(over="ignore"):
        beyond = round_to(np.array(LARGEST[dtype]) * (1 + unit), dtype)
    assert beyond == (LARGEST[dtype] if dtype in FINITE else np.inf)


@pytest.mark.parametrize("dtype", sorted(FACTOR))
def test_plain_arithmetic_passes_and_ten_times_its_error_does_not(dtype):
    rng = np.random.default_rng(1)
    exact = rng.standard_normal(10_000)
    storage = exact * (1 + 8 * EPSILON[dtype] * rng.standard_normal(exact.shape))
    limits = tolerance(dtype, dtype, exact, storage)
    error = storage - exact
    assert rms(error) < limits.rmse < 10 * rms(error)
    assert np.all(np.abs(error) <= limits.element + limits.relative * np.abs(exact))


def test_one_wrong_element_of_many_is_outside_though_the_mean_is_within():
    exact = np.linspace(-1, 1, 1_000_001)
    limits = tolerance("f32", "f32", exact, exact.astype(np.float32).astype(np.float64))
    off = np.zeros_like(exact)
    off[3] = 1e-5
    assert rms(off) < limits.rmse
    assert off[3] > limits.element + limits.relative * abs(exact[3])


def test_an_element_may_err_as_far_beyond_the_mean_as_that_of_plain_arithmetic_does():
    exact, error = np.ones(10_000), np.full(10_000, 1e-7)
    error[7] = 1e-5
    limits = tolerance("f32", "f32", exact, exact + error)
    assert limits.element == pytest.approx(limits.rmse * 1e-5 / rms(error))
    even = tolerance("f32", "f32", exact, exact + rms(error))
    assert (even.rmse, even.element) == pytest.approx((limits.rmse, 4.5 * limits.rmse))


def test_nothing_is_tolerated_of_zeros():
    zeros = np.zeros(5)
    limits = tolerance("f32", "f32", zeros, zeros)
    assert (limits.rmse, limits.element) == (0.0, 0.0)


def test_root_mean_square_does_not_overflow():
    assert rms(np.full(4, 1e300)) == pytest.approx(1e300)
    assert rms(np.array([])) == 0.0


def test_the_ratio_of_norms_is_defined_for_zeros():
    assert norm_ratio(np.zeros(3), np.zeros(3)) == 0.0
    assert norm_ratio(np.ones(3), np.zeros(3)) == float("inf")
    assert norm_ratio(np.ones(3), np.full(3, 2.0)) == pytest.approx(0.5)


def rounded(shape, dtype, seed=2):
    """Numbers with the errors that rounding to a format makes."""
    exact = np.random.default_rng(seed).standard_normal(shape)
    return exact, round_to(exact, dtype).astype(np.float64) - exact


def whys(dtype, exact, got, error):
    return " ".join(allowance(dtype, dtype, got, exact, [error]))


# In f32 the factor may be off by all of the floor, as the mean error may.
@pytest.mark.parametrize("dtype, factor", [("bf16", 1.004), ("f16", 1.0005)])
def test_a_common_factor_is_seen_that_the_mean_error_hides(dtype, factor):
    exact, error = rounded((64, 96), dtype)
    assert whys(dtype, exact, exact + error, error) == ""
    got = (exact + error) * factor
    assert rms(got - exact) < tolerance(dtype, dtype, exact, exact + error).rmse
    assert "times what is right" in whys(dtype, exact, got, error)


def test_a_factor_is_allowed_that_few_or_equal_elements_may_have():
    for exact in (np.full((8, 32), 1 / 33), np.random.default_rng(3).standard_normal(20)):
        assert whys("bf16", exact, exact * 1.003, exact * 0.0) == ""


def test_small_rows_beside_large_ones_are_as_exact():
    exact, error = rounded((40, 64), "f32")
    scale = np.where(np.arange(40) % 4, 1.0, 1e-4)[:, None]
    exact, error = exact * scale, error * scale
    got = exact + np.where(scale < 1, exact * 1e-4, error)
    assert rms(got - exact) < tolerance("f32", "f32", exact, exact + error).rmse
    assert "rows whose" in whys("f32", exact, got, error)
    assert whys("f32", exact, exact - error, error) == ""


def test_scales_are_had_without_threads(monkeypatch):
    """A matrix product of numpy is BLAS's, whose threads wait for each other on a busy machine."""

    class Counted(np.ndarray):
        def __matmul__(self, other):
            raise AssertionError("a product by BLAS")

    exact = np.linspace(-1, 1, 4096).reshape(64, 64)
    error = 1e-7 * np.cos(np.arange(4096.0)).reshape(64, 64)
    held, off = exact.view(Counted), error.view(Counted)
    assert rms(off) == pytest.approx(float(np.sqrt(np.mean(error**2))), rel=1e-12)
    tolerance("f32", "f32", held, (exact + error).view(Counted))
    assert not list(allowance("f32", "f32", held + off, held, [off]))
