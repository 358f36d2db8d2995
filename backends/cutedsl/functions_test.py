"""What functions of kernels give, on numbers of the testing twin."""

from math import erf, inf, isinf, isnan, nan, sqrt

import numpy as np
import pytest

from backends.cutedsl.testing.fakes import installed
from backends.cutedsl.testing.numbers import Float32


@pytest.fixture(scope="module")
def fn():
    with installed() as kernel:
        yield kernel.fn


def short_gelu(fn, x):
    return float(fn.short_gelu(Float32(x)).value)


def test_a_short_gelu_is_right_within_half_a_unit_of_16_bits(fn):
    for x in np.linspace(-5, 9, 1401):
        exact = x * 0.5 * (1 + erf(x / sqrt(2)))
        assert short_gelu(fn, x) == pytest.approx(exact, rel=2e-4, abs=1e-6), x


def test_a_short_gelu_of_large_numbers_is_the_number_or_nothing(fn):
    for x in (16.0, 1e4, 3e38):
        assert short_gelu(fn, x) == np.float32(x)
        assert short_gelu(fn, -x) == pytest.approx(0.0, abs=1e-6)


def test_a_short_gelu_has_infinite_numbers_and_nan_where_gelu_has(fn):
    assert isinf(short_gelu(fn, inf))
    assert isnan(short_gelu(fn, -inf)) and isnan(short_gelu(fn, nan))
    assert isnan(float(fn.gelu(Float32(-inf)).value))
