"""Scales, 8-bit powers of two: rules, inputs, and block-scaled sums of products."""

import numpy as np
import pytest

from ir.dtypes import promote
from ir.errors import KernelError
from ir.reference.draws import drawn, draws
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.reference.rounding import round_to
from ir.spec import FLOATS, SCALE, SMALL
from ir.verify import facts
from testing.samples.samples import spec_of

BODY = "f32(x[m, b, k]) * f32(s[m, b]) * f32(w[n, b, k]) * f32(t[n, b])"
SIZES = {"M": 5, "B": 3, "N": 4}


def scaled(dtype: str = "f8e4m3"):
    return spec_of(
        f"y[m, n] = sum({BODY}, b, k)",
        inputs=f"x: {dtype}[M, B, 32], s: f8e8m0[M, B], w: {dtype}[N, B, 32], t: f8e8m0[N, B]",
        result="f32[M, N]",
    )


def test_a_scale_is_a_float_whose_arithmetic_is_that_of_f32():
    assert SCALE in FLOATS and SCALE in SMALL
    assert [promote(SCALE, d) for d in ("f8e4m3", "f16", "bf16", "f32", SCALE)] == [
        "f32",
        "f32",
        "bf16",
        "f32",
        SCALE,
    ]
    spec = spec_of("y[m] = x[m] * 2.0", inputs="x: f8e8m0[M]", result="f32[M]")
    assert facts(spec).tensors["y"].dtype == "f32"


@pytest.mark.parametrize(
    ("equation", "given", "result", "words"),
    [
        ("y[m] = f8e8m0(x[m])", "f32", "f32[M]", "a cast to f8e8m0, which only inputs are"),
        ("y[m] = x[m]", "f8e8m0", "f8e8m0[M]", "`y` is f8e8m0, which only inputs can be"),
        ("y[m] = max(pad(x[m + i], -inf), i=2)", "f8e8m0", "f32[M]", "has no infinity"),
    ],
)
def test_nothing_is_rounded_to_a_scale(equation, given, result, words):
    with pytest.raises(KernelError, match=words):
        facts(spec_of(equation, inputs=f"x: {given}[M]", result=result))


def test_inputs_are_powers_of_two_about_1():
    inputs = random_inputs(scaled(), {"M": 64, "B": 16, "N": 4}, np.random.default_rng(0))
    significand, exponent = np.frexp(inputs["s"])
    assert (significand == 0.5).all()
    assert len(set(exponent.ravel())) > 8 and np.abs(exponent).max() < 12


def test_every_draw_gives_finite_results():
    spec = scaled()
    for name in draws(spec):
        inputs = drawn(spec, SIZES, np.random.default_rng(1), name)
        assert (round_to(inputs["s"], SCALE) == inputs["s"]).all()
        (found,) = evaluate(spec, inputs, SIZES).values()
        assert np.isfinite(found).all()


def test_a_scale_of_nan_gives_nan_in_its_row_alone():
    spec = scaled()
    inputs = random_inputs(spec, SIZES, np.random.default_rng(2))
    inputs["s"][2, 1] = np.nan
    (found,) = evaluate(spec, inputs, SIZES).values()
    assert np.isnan(found[2]).all() and np.isfinite(np.delete(found, 2, axis=0)).all()


def test_sums_with_scales_are_those_of_numpy():
    spec = scaled("f8e5m2")
    inputs = {
        n: np.float64(a) for n, a in random_inputs(spec, SIZES, np.random.default_rng(3)).items()
    }
    (found,) = evaluate(spec, inputs, SIZES).values()
    x, w = (inputs[a] * inputs[s][..., None] for a, s in (("x", "s"), ("w", "t")))
    np.testing.assert_allclose(found, np.einsum("mbk,nbk->mn", x, w), rtol=1e-12)
