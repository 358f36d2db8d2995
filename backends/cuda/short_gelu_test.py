"""GELU that is rounded to 16 bits, in half the instructions."""

from __future__ import annotations

from math import erf, sqrt

import numpy as np
import pytest

from backends.cuda.testing.emulation import emulated, machine_of
from backends.cuda.testing.samples import backend
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule, parse_spec

MACHINE = machine_of("h200")
SIZES = {"M": 1501}
SCHEDULE = "schedule(f)\ntile(m, size=512)\nplace(m.outer, level=grid)\n"


def given(numbers, dtype, folder):
    spec = parse_spec(
        f'def f(x: f32[M]) -> {dtype}[M]:\n    """F."""\n    y[m] = {dtype}(gelu(x[m]))\n    return y\n'
    )
    nest = lower(spec, parse_schedule(SCHEDULE), MACHINE, SIZES)
    source = backend().emit(nest, MACHINE)
    sizes = {"M": len(numbers)}
    inputs = {"x": np.asarray(numbers, np.float32)}
    return source, emulated(source, nest, MACHINE, sizes, inputs, folder)["y"].astype(np.float64)


@pytest.mark.parametrize("dtype, unit", [("f16", 2**-11), ("bf16", 2**-8)])
def test_it_is_right_within_the_rounding(dtype, unit, tmp_path):
    numbers = np.linspace(-5, 9, 1501)
    source, found = given(numbers, dtype, tmp_path)
    assert "fn::short_gelu(" in source
    exact = np.array([x * 0.5 * (1 + erf(x / sqrt(2))) for x in numbers])
    np.testing.assert_allclose(found, exact, rtol=2e-4 + unit, atol=1e-6)


def test_large_and_infinite_numbers_and_nan_become_what_they_become_in_gelu(tmp_path):
    _, found = given([16.0, 3e4, -3e4, np.inf, -np.inf, np.nan], "bf16", tmp_path)
    assert found[0] == 16.0 and found[1] == pytest.approx(3e4, rel=2**-8) and found[2] == 0.0
    assert np.isposinf(found[3]) and np.isnan(found[4:]).all()


def test_a_gelu_of_f32_keeps_its_digits(tmp_path):
    source, found = given([1.0, -1.0, 0.5], "f32", tmp_path)
    assert "fn::gelu(" in source
    exact = [x * 0.5 * (1 + erf(x / sqrt(2))) for x in (1.0, -1.0, 0.5)]
    np.testing.assert_allclose(found, exact, rtol=1e-6)
