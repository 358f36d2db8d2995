"""Bounds of values that tensors and casts of narrow floats hold."""

from math import inf

import pytest

from ir.parse.parse import parse_spec
from ir.print import spec_text
from ir.variant.bounds import LARGEST, held_interval, interval, positive
from testing.samples.samples import spec_of

HELD = {
    "x[m, k] * 0.5": (-32752.0, 32752.0),
    "f32(x[m, k])": (-65504.0, 65504.0),
    "f16(w[m, k])": (-65504.0, 65504.0),
    "w[m, k]": (-inf, inf),
    "sigmoid(w[m, k]) * x[m, k]": (-65504.0, 65504.0),
    "exp(w[m, k] - top[m])": (0.0, 1.0),
    "exp(top[m] - w[m, k])": (0.0, inf),
    "exp(w[m, k] * 2.0 - top[m])": (0.0, inf),
    "exp(twice[m, k] - most[m])": (0.0, 1.0),
    "exp(w[m, k] * 2.0 - most[m])": (0.0, 1.0),
    "exp(w[m, k] - least[m])": (0.0, inf),
}


def value(text):
    """The expression, in a spec that has the maxima of rows."""
    spec = spec_of(
        "top[m] = max(w[m, k], k)",
        "least[m] = min(w[m, k], k)",
        "twice[m, k] = w[m, k] * 2.0",
        "most[m] = max(twice[m, k], k)",
        f"y[m, k] = (top[m] + least[m] + most[m]) * f32(x[m, k]) * 0.0 + ({text})",
        inputs="x: f16[M, K], w: f32[M, K]",
        result="f32[M, K]",
    )
    return spec, spec.equations[-1].value.args[1]


@pytest.mark.parametrize("text", HELD)
def test_a_narrow_float_bounds_what_it_holds(text):
    assert held_interval(*value(text)) == HELD[text]


def test_without_dtypes_an_input_has_no_bound():
    assert interval(*value("x[m, k] * 0.5")) == (-inf, inf)


@pytest.mark.parametrize(("dtype", "most"), LARGEST.items())
def test_each_narrow_float_has_its_own_range(dtype, most):
    spec = spec_of("y[m, k] = f32(x[m, k])", inputs=f"x: {dtype}[M, K]", result="f32[M, K]")
    assert held_interval(spec, spec.equations[0].value) == (-most, most)


def test_a_declared_range_bounds_a_float():
    text = (
        "def ranged(\n    x: f32[M],\n    p: f32[M],\n) -> f32[M]:\n"
        '    """Floats of which the spec says something."""\n'
        "    range(x, -2.0, 3.0)\n    range(p, 0.5, 4.0)\n"
        "    y[m] = x[m] * p[m]\n    return y\n"
    )
    spec = parse_spec(text)
    (equation,) = spec.equations
    assert interval(spec, equation.value) == (-8.0, 12.0)
    assert [positive(spec, factor) for factor in equation.value.args] == [False, True]
    assert spec_text(spec) == text
