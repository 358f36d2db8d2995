"""Dimensions that are always indexed together merge, and values are unchanged."""

import numpy as np
import pytest

from ir.parse.parse import parse_spec
from ir.partition.partition import partition
from ir.print import spec_text
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.reference.stepwise import evaluate as stepwise


def made(given, result, *lines):
    """The parameters and the equations of the kernels that a text becomes, which agree with it."""
    *equations, last = lines
    name = last.split("[")[0]
    text = "\n".join(f"    {line}" for line in (*equations, last, f"return {name}"))
    spec = parse_spec(f'def f({given}) -> {result}:\n    """F."""\n{text}\n')
    network = partition(spec, {})
    values = random_inputs(spec, {}, np.random.default_rng(3))
    for got, want in zip(
        stepwise(network, values), evaluate(spec, values, {}).values(), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-12)
    found = []
    for step in network.steps:
        for line in spec_text(step.spec).splitlines()[1:]:
            line = line.strip().removesuffix(",")
            if not line.startswith(('"""', ")", "return")):
                found.append(line)
    return found


def test_rows_of_a_batch_are_rows_of_one_matmul():
    lines = made(
        "x: f32[2, 3, 5], w: f32[4, 5], z: f32[4]",
        "f32[2, 3, 4]",
        "c[b, s, n] = sum(x[b, s, k] * w[n, k], k)",
        "y[b, s, n] = exp(c[b, s, n] + z[n])",
    )
    assert lines == [
        "x0: f32[6, 5]",
        "x1: f32[4, 5]",
        "x2: f32[4]",
        "c[i, j] = sum(x0[i, k] * x1[j, k], k)",
        "y[i, j] = exp(c[i, j] + x2[j])",
    ]


def test_a_pointwise_kernel_has_one_dimension():
    lines = made(
        "x: f32[2, 3, 5], z: f32[2, 3, 5]", "f32[2, 3, 5]", "y[i, j, k] = x[i, j, k] * z[i, j, k]"
    )
    assert lines == ["x0: f32[30]", "x1: f32[30]", "y[i] = x0[i] * x1[i]"]


def test_reduced_dimensions_are_merged():
    lines = made(
        "x: f32[2, 3, 4, 5]",
        "f32[2, 3, 4, 5]",
        "s[c] = sum(x[n, c, h, w], n, h, w)",
        "y[n, c, h, w] = x[n, c, h, w] - s[c]",
    )
    assert lines == [
        "x: f32[2, 3, 20]",
        "s[i] = sum(x[j, i, k], j, k)",
        "y[j, i, k] = x[j, i, k] - s[i]",
    ]


@pytest.mark.parametrize(
    ("given", "result", "line", "left"),
    [
        ("x: f32[3, 2, 5]", "f32[2, 3, 5]", "y[a, b, k] = exp(x[b, a, k])", "y[i, j, k]"),
        (
            "x: f32[2, 4, 5]",
            "f32[2, 3, 5]",
            "y[a, b, k]: [2, 3, 5] = exp(x[a, b, k])",
            "y[i, j, k]",
        ),
        ("x: f32[2, 3], z: f32[3]", "f32[2, 3]", "y[a, b] = x[a, b] * z[b]", "y[i, j]"),
        ("x: f32[3, 3]", "f32[3, 3]", "y[a, b] = where(b <= a, x[a, b], 0.0)", "y[i, j]"),
        ("x: f32[2, 3]", "f32[2, 3]", "y[a, b] = cumsum(x[a, b], b)", "y[i, j]"),
        ("x: f32[3, 4]", "f32[3]", "y[a] = sum(x[a, b], b)", "y[i]"),
        ("x: f32[2, 3]", "f32[2, 3]", "y[a, b]: [2, 3] = x[a, (b + 1) % 3]", "y[i, j]"),
    ],
)
def test_dimensions_that_do_not_always_run_together_stay(given, result, line, left):
    *_, spelled = made(given, result, line)
    assert spelled.startswith(left)


def test_the_index_of_the_largest_of_several_dimensions_counts_along_them():
    found = made("x: f32[2, 3, 4]", "i64[2, 3]", "y[a, b] = argmax(x[a, b, k], k)")
    assert found == ["x: f32[6, 4]", "y[i] = argmax(x[i, j], j)"]


def test_what_a_position_reads_is_merged_too():
    lines = made(
        "w: f32[7, 4], at: i64[2, 3]",
        "f32[2, 3, 4]",
        "y[a, b, k] = w[at[a, b] % 7, k]",
    )
    assert lines[-1].startswith("y[i, j] = ")
