"""Outer products of small tensors are inlined, and nothing is computed twice."""

from __future__ import annotations

import numpy as np
import pytest

from ir.parse.parse import parse_spec
from ir.partition.expanded import through_expansions
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate

GIVEN = {"s": "s: f32[3, 8]", "c": "c: f32[16, 8]", "p": "p: f32[3, 16, 8]"}
WIDE = "m[i, l, j]: [3, 16, 8] = s[i, j] * s[i, l // 2]"


def seen(*lines, result="f32[3, 16, 8]"):
    """What is left of a spec, after its results were compared with the spec's."""
    body = "\n".join(f"    {line}" for line in (*lines, "return y"))
    given = ", ".join(GIVEN[name] for name in "scp" if any(f"{name}[" in line for line in lines))
    spec = parse_spec(f'def f({given}) -> {result}:\n    """F."""\n{body}\n')
    made = through_expansions(spec)
    inputs = random_inputs(spec, {}, np.random.default_rng(1))
    for name, want in evaluate(spec, inputs, {}).items():
        np.testing.assert_allclose(evaluate(made, inputs, {})[name], want, rtol=1e-12)
    return [e.target for e in made.equations]


def test_an_outer_product_is_not_stored():
    assert seen(WIDE, "y[i, l, j] = p[i, l, j] - m[i, l, j]") == ["y"]


def test_one_of_tensors_that_are_nearly_as_large_is():
    large = "m[i, l, j] = s[i, j] * c[l, j]"  # 24 and 128 elements make 384
    assert seen(large, "y[i, l, j] = p[i, l, j] - m[i, l, j]") == ["m", "y"]


@pytest.mark.parametrize(
    "lines",
    [
        ("y[i, l, j] = m[i, l, j] - m[2 - i, l, j]",),  # two reads
        ("z[i, l, j] = m[i, l, j] * 2.0", "y[i, l, j] = z[i, l, j] + m[i, l, j]"),  # two readers
        ("z[i, j] = sum(m[i, l, j], l)", "y[i, l, j] = p[i, l, j] + z[i, j]"),  # a sum
        ("y[i, l, j] = p[i, l, j] + pad(m[i, l, j - 1], 0.0)",),
    ],
)
def test_others_are_stored(lines):
    assert "m" in seen(WIDE, *lines)
