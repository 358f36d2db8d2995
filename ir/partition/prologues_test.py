"""Pointwise equations that windows read once are inlined, and no others."""

from __future__ import annotations

import numpy as np
import pytest

from ir.parse.parse import parse_spec
from ir.partition.prologues import with_prologues
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate

SCALED = "b[n, y, x] = a[n, y, x] * s[n]"
RELU = "r[n, y, x] = relu(b[n, y, x])"
POOL = "t[n, p, q] = max(r[n, 2*p + i, 3*q + j], i=2, j=3)"


def seen(*lines, result="f32[2, 4, 2]"):
    """The equations of a spec that returns `t`, after its results were compared with the spec's."""
    body = "\n".join(f"    {line}" for line in (*lines, "return t"))
    given = "a: f32[2, 8, 6]" + ", s: f32[2]" * any("s[" in line for line in lines)
    spec = parse_spec(f'def f({given}) -> {result}:\n    """F."""\n{body}\n')
    made = with_prologues(spec, {})
    inputs = random_inputs(spec, {}, np.random.default_rng(1))
    want = evaluate(spec, inputs, {})["t"]
    np.testing.assert_allclose(evaluate(made, inputs, {})["t"], want, rtol=1e-12)
    return [e.target for e in made.equations]


def test_a_chain_is_computed_in_windows_that_do_not_overlap():
    assert seen(SCALED, RELU, POOL) == ["t"]
    rows = "t[n, p] = sum(r[n, 2*p + i, j], j, i=2)"
    assert seen(SCALED, RELU, rows, result="f32[2, 4]") == ["t"]


@pytest.mark.parametrize(
    ("lines", "result"),
    [
        (("t[n, p, q] = max(r[n, p + i, 3*q + j], i=2, j=3)",), "f32[2, 7, 2]"),  # they overlap
        (("t[n, p, q] = max(pad(r[n, 2*p + i - 1, q], 0.0), i=2)",), "f32[2, 5, 6]"),
        (("t[n, y] = sum(r[n, y, x], x)",), "f32[2, 8]"),  # no windows: rows, which groups take
        (
            ("z[n, p, x] = max(r[n, 2*p + i, x], i=2)", "t[n, p, x] = z[n, p, x] + r[n, p, x]"),
            "f32[2, 4, 6]",
        ),
    ],
)
def test_others_are_stored(lines, result):
    assert "r" in seen(SCALED, RELU, *lines, result=result)


def test_the_epilogue_of_a_product_stays_with_it():
    square = ("b[n, y, x] = sum(a[n, y, k] * a[n, x, k], k)", RELU)
    assert seen(
        *square, "t[n, p, q] = max(r[n, 2*p + i, 4*q + j], i=2, j=4)", result="f32[2, 4, 2]"
    ) == ["b", "r", "t"]
