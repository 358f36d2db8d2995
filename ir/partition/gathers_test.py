"""Pointwise equations are inlined into gathers, unless that is more work or they have other
readers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir.literal import literal
from ir.parse.parse import parse_spec
from ir.partition.gathers import through_gathers
from ir.partition.partition import partition
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from testing.samples.random_specs import sizes_for, specs

LOSS = (
    "t[i] = max(x[i, j], j)",
    "s[i] = sum(exp(x[i, j] - t[i]), j)",
    "l[i, j] = x[i, j] - t[i] - log(s[i])",
    "y[i] = -l[i, n[i]]",
)


def spec_of(*lines, result="f32[4]"):
    body = "\n".join(f"    {line}" for line in (*lines, "return y"))
    head = f'def f(x: f32[4, 8], n: i32[4]) -> {result}:\n    """F."""\n    range(n, 0, 4)\n'
    return parse_spec(f"{head}{body}\n")


def targets(*lines, result="f32[4]"):
    return [e.target for e in through_gathers(spec_of(*lines, result=result)).equations]


def test_logarithms_of_other_classes_are_not_stored():
    assert targets(*LOSS) == ["t", "s", "y"]
    assert len(partition(spec_of(*LOSS), {}).steps) == 1


def test_a_chain_of_pointwise_equations_is_computed_there_too():
    lines = ("a[i, j] = exp(x[i, j])", "b[i, j] = a[i, j] * 2.0", "y[i] = b[i, n[i]]")
    assert targets(*lines) == ["y"]


def test_a_gather_of_as_many_elements_computes_them():
    assert targets("a[i] = exp(x[i, 0])", "y[j] = a[n[j]]") == ["y"]


@pytest.mark.parametrize(
    "lines, result",
    [
        (("a[i, j] = exp(x[i, j])", "y[i] = a[i, n[i]] + a[i, 0]"), "f32[4]"),  # read elsewhere
        (("a[i, j] = cumsum(x[i, j], j)", "y[i] = a[i, n[i]]"), "f32[4]"),  # not pointwise
        (("a[i] = exp(x[i, 0])", "y[i, j] = a[n[i]] + x[i, j]"), "f32[4, 8]"),  # more elements
    ],
)
def test_others_stay(lines, result):
    assert targets(*lines, result=result) == ["a", "y"]


@given(st.data(), specs())
def test_results_are_the_same(data, spec):
    sizes = data.draw(sizes_for(spec))
    spec = literal(spec, sizes)
    inputs = random_inputs(spec, {}, np.random.default_rng(1))
    expected, found = evaluate(spec, inputs, {}), evaluate(through_gathers(spec), inputs, {})
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)


def test_the_loss_is_the_same():
    spec = spec_of(*LOSS)
    inputs = random_inputs(spec, {}, np.random.default_rng(0))
    expected, found = evaluate(spec, inputs, {}), evaluate(through_gathers(spec), inputs, {})
    np.testing.assert_array_equal(found["y"], expected["y"])
