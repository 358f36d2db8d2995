"""Repeated equations are computed once; those that only look alike are not merged."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ir.parse.parse import parse_spec
from ir.partition.repeated import once
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from testing.samples.random_specs import sizes_for, specs


def targets(*lines, returned="y"):
    body = "\n".join(f"    {line}" for line in (*lines, f"return {returned}"))
    spec = parse_spec(f'def f(x: f32[4, 4]) -> f32[4, 4]:\n    """F."""\n{body}\n')
    return [e.target for e in once(spec).equations]


def test_equal_right_sides_are_one_equation():
    assert targets(
        "a[i, j] = exp(x[i, j])", "b[k, l] = exp(x[k, l])", "y[i, j] = a[i, j] + b[j, i]"
    ) == ["a", "y"]


def test_reductions_are_compared_by_what_they_reduction():
    assert targets(
        "a[i] = sum(x[i, j], j)",
        "b[k] = sum(x[k, l], l)",
        "c[l] = sum(x[k, l], k)",
        "y[i, j] = a[i] + b[j] + c[i]",
    ) == ["a", "c", "y"]


def test_a_transpose_is_another_equation():
    assert targets(
        "a[i, j] = exp(x[i, j])", "b[i, j] = exp(x[j, i])", "y[i, j] = a[i, j] + b[i, j]"
    ) == ["a", "b", "y"]


@given(st.data(), specs())
def test_results_are_the_same(data, spec):
    sizes = data.draw(sizes_for(spec))
    inputs = random_inputs(spec, sizes, np.random.default_rng(1))
    expected, found = evaluate(spec, inputs, sizes), evaluate(once(spec), inputs, sizes)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)
