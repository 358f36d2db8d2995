"""Reductions of one tensor along the same indices share a kernel, which reads it once."""

import numpy as np
import pytest

from ir.parse.parse import parse_spec
from ir.partition.partition import partition
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.reference.stepwise import evaluate as evaluate_network

DISTANCES = '''
def f(a: f32[6, 40], b: f32[6, 40], c: f32[6, 40]) -> f32[6]:
    """How much nearer b is to a than c."""
    p[i] = sum((a[i, j] - b[i, j]) * (a[i, j] - b[i, j]), j)
    d[k] = sqrt(p[k])
    q[l] = sum((a[l, m] - c[l, m]) * (a[l, m] - c[l, m]), m)
    e[n] = sqrt(q[n])
    y[o] = maximum(d[o] - e[o] + 1.0, 0.0)
    return y
'''


def kernels(text):
    spec = parse_spec(text)
    made = partition(spec, {})
    inputs = random_inputs(spec, {}, np.random.default_rng(1))
    (expected,), (found,) = evaluate(spec, inputs, {}).values(), evaluate_network(made, inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    return [sorted(t.name for t in step.spec.inputs) for step in made.steps]


def test_two_distances_from_one_tensor_are_one_kernel():
    assert [len(inputs) for inputs in kernels(DISTANCES)] == [3]


def test_a_reduction_that_needs_the_rows_of_another_joins_too():
    text = DISTANCES.replace(
        "(a[l, m] - c[l, m]) * (a[l, m] - c[l, m])", "a[l, m] * c[l, m] * d[l]"
    )
    assert [len(inputs) for inputs in kernels(text)] == [3]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(a[l, m] - c[l, m]) * (a[l, m] - c[l, m])", "(b[l, 39 - m] - c[l, m]) * 2.0"),  # mirrored
        ("(a[l, m] - c[l, m]) * (a[l, m] - c[l, m])", "c[l, m] * c[l, m]"),  # nothing in common
    ],
)
def test_others_have_kernels_of_their_own(old, new):
    assert len(kernels(DISTANCES.replace(old, new))) == 2


def test_so_have_reductions_along_another_dimension():
    text = DISTANCES.replace("6, 40", "8, 8").replace("6", "8").replace("a[l, m]", "a[m, l]")
    assert len(kernels(text)) == 2
