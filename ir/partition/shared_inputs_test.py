"""Matmuls of one input merge if only contractions read their results; results are unchanged."""

from __future__ import annotations

import numpy as np
import pytest

from ir.parse.parse import parse_spec
from ir.partition.constants import divided
from ir.partition.shared_inputs import with_shared_inputs
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.spec import Reduce
from ir.verify import facts

FIXED = ("a", "b", "c", "d")
HEAD = "def f(x: f32[6, 8], a: f32[4, 8], b: f32[{}, 8], c: f32[4], d: f32[{}]) -> f32[{}]:"
SUMS = (
    "q[m, j] = sum(x[m, k] * a[j, k], k)",
    "p[m, j2] = q[m, j2] + c[j2]",
    "r[n, i] = sum(x[n, l] * b[i, l], l)",
    "s[n, i2] = r[n, i2] + d[i2]",
)


def spec_of(*last, width=4, out="6, 6", sums=SUMS, head=HEAD):
    lines = [head.format(width, width, out), '"""F."""', *sums, *last, "return y"]
    return parse_spec("\n    ".join(lines) + "\n")


def matmuls(spec):
    return sum(isinstance(e.value, Reduce) and "x" in e.sources() for e in spec.equations)


def same(spec, made):
    given = random_inputs(spec, {}, np.random.default_rng(3))
    facts(made)
    for t in spec.outputs:
        expected, found = (evaluate(one, given, {})[t.name] for one in (spec, made))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("last", "options"),
    [
        (("y[m, n] = sum(p[m, e] * s[n, e], e)",), {}),
        (("t[e, n] = s[n, e]", "y[m, n] = sum(p[m, e] * t[e, n], e)"), {}),
        (
            (
                "u[m, n] = sum(p[m, e] * p[n, e], e)",
                "v[m, g] = sum(u[m, n] * s[n, g], n)",
                "y[m, g] = v[m, g]",
            ),
            dict(width=3, out="6, 3"),
        ),
        (
            ("y[m, n] = sum(q[m, e] * r[n, e], e)",),
            dict(
                sums=(SUMS[0], SUMS[2]),
                head="def f(x: f32[6, 8], a: f32[4, 8], b: f32[{0}, 8]) -> f32[{2}]:",
            ),
        ),
    ],
    ids=["with vectors", "through a view", "of unlike widths", "without an epilogue"],
)
def test_results_that_contractions_read_are_of_one_matmul(last, options):
    spec = spec_of(*last, **options)
    made = with_shared_inputs(spec, {}, FIXED)
    assert (matmuls(spec), matmuls(made)) == (2, 1)
    same(spec, made)


def test_weights_are_put_together_before_calls():
    parts = divided(spec_of("y[m, n] = sum(p[m, e] * s[n, e], e)"), {}, FIXED)
    assert parts is not None
    assert {t.name for t in parts.before.outputs} == {"a_beside", "c_beside"}
    assert {t.name for t in parts.call.inputs} == {"x", "a_beside", "c_beside"}


@pytest.mark.parametrize(
    ("last", "options"),
    [
        (("y[m, j] = p[m, j] * s[m, j]",), dict(out="6, 4")),  # gate and up
        (("h[n, i] = exp(s[n, i])", "y[m, n] = sum(p[m, e] * h[n, e], e)"), {}),
        (
            ("y[m, n] = sum(p[m, e] * s[n, e], e)",),
            dict(sums=(*SUMS[:3], "s[n, i2] = r[n, i2] * d[i2]")),  # other epilogues
        ),
    ],
)
def test_other_matmuls_stay(last, options):
    spec = spec_of(*last, **options)
    assert with_shared_inputs(spec, {}, FIXED) == spec


def test_weights_that_change_between_calls_stay():
    spec = spec_of("y[m, n] = sum(p[m, e] * s[n, e], e)")
    assert with_shared_inputs(spec, {}, ("a", "c")) == spec


def test_weights_can_be_shared_by_several_matmuls():
    """As those of a layer that is called twice."""
    again = tuple(
        line.replace("q[", "q2[").replace("p[", "p2[").replace("r[", "r2[").replace("s[", "s2[")
        for line in SUMS
    )
    again = tuple(
        line.replace("x[", "z[").replace("m,", "u,").replace("n,", "v,") for line in again
    )
    spec = spec_of(
        "o[m, n] = sum(p[m, e] * s[n, e], e)",
        "z[u, k] = tanh(x[u, k])",
        *again,
        "t[u, v] = sum(p2[u, e] * s2[v, e], e)",
        "y[m, n] = o[m, n] + t[m, n]",
    )
    made = with_shared_inputs(spec, {}, FIXED)
    assert sum(isinstance(e.value, Reduce) for e in spec.equations) == 6
    assert sum(isinstance(e.value, Reduce) for e in made.equations) == 4
    same(spec, made)
