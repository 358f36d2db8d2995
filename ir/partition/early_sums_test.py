"""Sums over windows move before their matmul, and results are unchanged."""

from __future__ import annotations

import numpy as np
import pytest

from ir.parse.parse import parse_spec
from ir.partition.early_sums import with_early_sums
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate

PRODUCT = "c[n, o, y, x] = sum(a[n, k, y, x] * w[o, k], k)"
GIVEN = "a: f32[2, 3, 8, 6], w: f32[4, 3]"


def seen(result, *lines, given=GIVEN):
    """The equations of a spec that returns `t`, after its results were compared with the spec's."""
    body = "\n".join(f"    {line}" for line in (*lines, "return t"))
    spec = parse_spec(f'def f({given}) -> {result}:\n    """F."""\n{body}\n')
    made = with_early_sums(spec)
    inputs = random_inputs(spec, {}, np.random.default_rng(1))
    want = evaluate(spec, inputs, {})["t"]
    np.testing.assert_allclose(evaluate(made, inputs, {})["t"], want, rtol=1e-9, atol=1e-12)
    return [e.target for e in made.equations]


@pytest.mark.parametrize(
    ("result", "window"),
    [
        ("f32[2, 4, 4, 3]", "t[n, o, p, q] = sum(c[n, o, 2*p + i, 2*q + j], i=2, j=2)"),
        (
            "f32[2, 4, 4, 3]",
            "t[n, o, p, q] = sum(pad(c[n, o, 2*p + i - 1, 2*q + j], 0.0), i=3, j=2)",
        ),
        ("f32[4, 2, 4, 6]", "t[o, n, p, x] = sum(c[n, o, 2*p + i, x], i=2)"),
    ],
)
def test_a_sum_comes_before_a_product_of_one_tap(result, window):
    assert seen(result, PRODUCT, window) == ["a_sums", "c", "t"]


@pytest.mark.parametrize(
    ("result", "lines"),
    [
        ("f32[2, 4, 7, 6]", (PRODUCT, "t[n, o, p, x] = sum(c[n, o, p + i, x], i=2)")),  # not fewer
        # of all columns or rows
        ("f32[2, 8, 6]", (PRODUCT, "t[n, p, q] = sum(c[n, o, p, q], o)")),
        ("f32[2, 4]", (PRODUCT, "t[n, o] = sum(c[n, o, i, j], i, j)")),
        (
            "f32[2, 4, 4, 6]",
            (PRODUCT, "t[n, o, p, x] = max(c[n, o, 2*p + i, x], i=2)"),
        ),
        (
            "f32[2, 4, 4, 6]",  # an activation between them
            (
                PRODUCT,
                "r[n, o, y, x] = relu(c[n, o, y, x])",
                "t[n, o, p, x] = sum(r[n, o, 2*p + i, x], i=2)",
            ),
        ),
        (
            "f32[2, 4, 4, 6]",  # something else reads the product
            (
                PRODUCT,
                "z[n, o, p, x] = sum(c[n, o, 2*p + i, x], i=2)",
                "t[n, o, p, x] = z[n, o, p, x] + c[n, o, p, x]",
            ),
        ),
    ],
)
def test_others_stay_where_they_are(result, lines):
    assert seen(result, *lines) == [line.split("[")[0] for line in lines]
