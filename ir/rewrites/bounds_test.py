"""Bounds hold for every value, and are found where functions give them."""

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.rewrites.small_specs import spec_of
from ir.rewrites.smooth_specs import smooth_specs, themed_specs
from ir.variant.bounds import interval, positive
from testing.samples.random_specs import sizes_for

X, R = "x: f32[M, K], eps=1e-05", "f32[M, K]"
SMALL = 1e-9  # by which rounding may leave a bound

INTERVALS = {
    "30.0 * tanh(x[m, k])": (-30.0, 30.0),
    "-sigmoid(x[m, k])": (-1.0, 0.0),
    "minimum(maximum(x[m, k], -5.0), 3.0)": (-5.0, 3.0),
    "where(x[m, k] > 0, 2.0, sin(x[m, k]) - 1.0)": (-2.0, 2.0),
    "cos(x[m, k]) / 4.0": (-0.25, 0.25),
    "abs(erf(x[m, k]) * 2.0)": (0.0, 2.0),
    "relu(tanh(x[m, k]))": (0.0, 1.0),
    "x[m, k]": (-inf, inf),
    "x[m, k] * tanh(x[m, k])": (-inf, inf),
    "1.0 / tanh(x[m, k])": (-inf, inf),
}
POSITIVE = (
    "exp(x[m, k])",
    "rsqrt(x[m, k] ** 2 + eps)",
    "maximum(x[m, k], 0.5)",
    "eps",
    "K / 2",
    "sigmoid(x[m, k]) * exp(-x[m, k])",
    "where(x[m, k] > 0, 1.0, 2.0)",
)
UNKNOWN = (
    "x[m, k]",
    "x[m, k] ** 2",
    "relu(x[m, k])",
    "exp(x[m, k]) - 1.0",
    "tanh(x[m, k])",
    "-eps",
)


def value(text):
    spec = spec_of(f"y[m, k] = x[m, k] * 0.0 + ({text})", X, R)
    return spec, spec.equations[0].value.args[1]


@pytest.mark.parametrize("text", INTERVALS)
def test_an_interval_follows_from_functions(text):
    assert interval(*value(text)) == INTERVALS[text]


@pytest.mark.parametrize("text", POSITIVE)
def test_what_is_positive(text):
    assert positive(*value(text))


@pytest.mark.parametrize("text", UNKNOWN)
def test_what_may_be_zero_or_less(text):
    assert not positive(*value(text))


def test_tensors_are_gone_into_once():
    lines = ["t0[m] = tanh(c[m])"]
    lines += [f"t{n + 1}[m] = t{n}[m] * (t{n}[m] + t{n}[m]) * 0.5" for n in range(60)]
    spec = spec_of("; ".join([*lines, "y[m] = t60[m]"]), "c: f32[M]", "f32[M]")
    assert interval(spec, spec.equations[-1].value)[1] <= 1.0
    assert not positive(spec, spec.equations[-1].value)


@given(data=st.data(), spec=st.one_of(smooth_specs(), themed_specs()))
def test_no_value_leaves_its_bounds(data, spec):
    sizes = data.draw(sizes_for(spec))
    inputs = random_inputs(spec, sizes, np.random.default_rng(2))
    for name, array in evaluate(spec, inputs, sizes).items():
        of = spec.equation(name).value
        low, high = interval(spec, of)
        assert low - SMALL <= array.min() and array.max() <= high + SMALL
        assert not positive(spec, of) or array.min() > 0
