"""Operands of concatenations are inlined, and results are unchanged."""

from __future__ import annotations

import numpy as np
import pytest

from ir.parse.parse import parse_spec
from ir.partition.concatenated import through_concatenations
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.verify import facts

CAT = "y[i, k] = where(k < 4, pad(p[i, k], 0.0), pad(x[i, k - 4], 0.0))"


def spec_of(*lines, inputs="x: f32[6, 8]", result="f32[6, 12]", returned="y"):
    body = "\n".join(f"    {line}" for line in (*lines, f"return {returned}"))
    return parse_spec(f'def f({inputs}) -> {result}:\n    """F."""\n{body}\n')


def same(spec, made):
    facts(made)
    given = random_inputs(spec, {}, np.random.default_rng(5))
    for t in spec.outputs:
        expected, found = (evaluate(one, given, {})[t.name] for one in (spec, made))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "spec",
    [
        spec_of("p[i, j]: [6, 4] = -x[i, j + 4]", CAT),
        spec_of(
            "p[i, j]: [6, 4] = exp(x[i, j])",
            "y[i, k] = where(k < 8, pad(x[i, k], 0.0), pad(p[i, k - 8], 1.0))",
        ),
        spec_of(
            "p[i, j]: [6, 8] = w[t[i, j]]",
            "y[i, k] = where(k < 4, pad(x[i, k], 0.0), pad(p[i, k - 4], 0.0))",
            inputs="x: f32[6, 8], w: f32[5], t: i32[6, 8]",
        ),
        spec_of("a[i, j]: [6, 4] = x[i, j] * 2.0", "p[i, j] = a[i, j] + x[i, j + 1]", CAT),
        spec_of("p[i, j]: [6, 4] = x[i, j * 2 + 1]", CAT),
        spec_of(
            "p[i, j]: [6, 10] = x[i, j // 2 + 3]",
            "y[i, k] = where(k < 1, pad(x[i, k], 0.0), pad(p[i, k - 1], 0.0))",
        ),
    ],
    ids=["a slice", "with another padding", "a gather", "of a part", "spread", "repeated"],
)
def test_a_part_is_computed_where_it_is_read(spec):
    made = through_concatenations(spec)
    assert "p" not in {e.target for e in made.equations}
    same(spec, made)


@pytest.mark.parametrize(
    "spec",
    [
        spec_of("s[i, j]: [6, 4] = sum(x[i, k2] * x[j, k2], k2)", "p[i, j] = relu(s[i, j])", CAT),
        spec_of(
            "p[i, j]: [6, 4] = -x[i, j]", CAT, result="(f32[6, 12], f32[6, 4])", returned="y, p"
        ),
        spec_of(
            "p[i, j]: [6, 4] = -x[i, j]",
            "z[i, k]: [6, 12] = pad(p[i, k], 0.0)",
            "y[i, k] = sum(z[i, k] * p[i, j], j)",
        ),
        spec_of("p[i, j]: [6, 4] = -x[i, j]", "y[i, k] = sum(pad(p[i, k + n], 0.0), n=2)"),
    ],
    ids=["a sum's epilogue", "an output", "also read as it is", "windows"],
)
def test_other_values_stay(spec):
    made = through_concatenations(spec)
    assert "p" in {e.target for e in made.equations}


def test_what_an_alias_shows_stays():
    spec = spec_of(
        "p[i, j]: [6, 4] = -x[i, j]",
        "v[n]: [24] = p[n // 4, n % 4]",
        "y[i, k] = pad(p[i, k], 0.0) + v[0]",
    )
    assert through_concatenations(spec, {"v": "p"}) == spec
