"""Maxima that may leave NaN out: those whose NaN reaches the result by sums of exponentials."""

import pytest

from backends.gpu.exponents import exponents
from testing.samples.samples import WITH_TF32, lowered, spec_of

SIZES = {"M": 8, "K": 16}
TILED = ("tile(m, size=4)", "tile(k, size=4)")
MAXIMUM = ("mx[m] = max(x[m, k], k)", "p[m, k] = exp(x[m, k] - mx[m])", "s[m] = sum(p[m, k], k)")
SOFTMAX = (*MAXIMUM, "y[m, k] = p[m, k] / s[m]")


def found(*equations, lines=TILED, **kwargs):
    nest = lowered(spec_of(*equations, **kwargs), *lines, sizes=SIZES, machine=WITH_TF32)
    return frozenset().union(*map(exponents, nest.launches))


@pytest.mark.parametrize("lines", [(), TILED, (*TILED, "online(mx, into=s)")])
def test_softmax_needs_no_nan_of_its_maximum(lines):
    assert found(*SOFTMAX, lines=lines) == {"mx"}


def test_attention_needs_no_nan_of_its_maximum():
    spec = spec_of(
        "mx[m] = max(x[m, k], k)",
        "p[m, k] = exp(x[m, k] - mx[m])",
        "l[m] = sum(p[m, k], k)",
        "o[m, d] = sum(p[m, k] * v[k, d], k)",
        "y[m, d] = o[m, d] / l[m]",
        inputs="x: f32[M, K], v: f32[K, D]",
        result="f32[M, D]",
    )
    online = (*TILED, "fuse(l, into=o)", "online(mx, into=o)", "compute(o, unit=matrix)")
    for lines in (online, (*online, "precision(o, dtype=tf32)")):
        nest = lowered(spec, *lines, sizes={**SIZES, "D": 4}, machine=WITH_TF32)
        assert exponents(nest.launches[0]) == {"mx"}


@pytest.mark.parametrize(
    "equations",
    [
        ("y[m] = max(x[m, k], k)",),
        ("mx[m] = max(x[m, k], k)", "y[m, k] = x[m, k] - mx[m]"),
        ("mx[m] = max(x[m, k], k)", "y[m, k] = exp(x[m, k] - mx[m])"),
        (
            "mx[m] = max(x[m, k], k)",
            "s[m] = sum(exp(x[m, k] * 2.0 - mx[m]), k)",
            "y[m] = mx[m] + s[m]",
        ),
        ("mx[m] = max(abs(x[m, k]), k)", "y[m] = sum(exp(x[m, k] - mx[m]), k)"),
        (*MAXIMUM, "y[m] = s[m] > mx[m]"),
        (*MAXIMUM, "y[m, k] = where(k > 0, p[m, k], p[m, k] / s[m])"),
    ],
)
def test_others_need_it(equations):
    dtype = "b8" if " > mx" in equations[-1] else "f32"
    shape = "M" if equations[-1].startswith("y[m] ") else "M, K"
    assert not found(*equations, result=f"{dtype}[{shape}]")


def test_a_maximum_that_is_stored_needs_it():
    lines = (*TILED, "kernel(mx)")
    assert not found(*SOFTMAX, lines=lines)
