"""A convolution's kernel reduces its result if a tile holds everything that is reduced."""

from math import prod

import numpy as np
import pytest

from ir.parse.parse import parse_spec
from ir.partition import row_sums as module
from ir.partition.partition import partition
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.reference.stepwise import evaluate as stepwise
from ir.sizes import shape

SUM = "c[b, o, i, j]: [2, 5, 3, {0}] = sum(x[b, k, i + r, j + s] * w[o, k, r, s], k, r, s)"


def network_of(*lines, result, width=60, returned="t"):
    """The network of equations on a convolution's results; it computes what they say."""
    lines = (SUM.format(width), "y[b, o, i, j] = gelu(c[b, o, i, j])", *lines)
    text = "\n".join(f"    {line}" for line in (*lines, f"return {returned}"))
    inputs = f"x: f32[2, 4, 4, {width + 1}], w: f32[5, 4, 2, 2]"
    spec = parse_spec(f'def f({inputs}) -> {result}:\n    """F."""\n{text}\n')
    network = partition(spec, {})
    given = random_inputs(spec, {}, np.random.default_rng(2))
    for t, found in zip(spec.outputs, stepwise(network, given), strict=True):
        np.testing.assert_allclose(found, evaluate(spec, given, {})[t.name], rtol=1e-10)
    return network


def stored(network):
    """How many elements each kernel stores."""
    return [sum(prod(shape(t, {})) for t in s.spec.outputs) for s in network.steps]


@pytest.fixture
def small(monkeypatch):
    """A limit at which the tensors of these tests are large."""
    monkeypatch.setattr(module, "LEAST", 1)


def test_channels_are_reduced_by_the_kernel_of_the_convolution():
    made = network_of("t[b, i, j] = min(y[b, o, i, j], o)", result="f32[2, 3, 60]")
    assert len(made.steps) == 1


def test_a_softmax_over_channels_is_of_that_kernel():
    made = network_of(
        "m[b, i, j] = max(y[b, o, i, j], o)",
        "l[b, i, j] = sum(exp(y[b, o, i, j] - m[b, i, j]), o)",
        "t[b, o, i, j] = exp(y[b, o, i, j] - m[b, i, j]) / l[b, i, j]",
        result="f32[2, 5, 3, 60]",
    )
    assert len(made.steps) == 1


def test_images_one_after_another_are_reduced_by_that_kernel():
    made = network_of("t[b, o, j] = min(y[b, o, i, j], i)", result="f32[2, 5, 60]")
    assert len(made.steps) == 1


def test_rows_are_reduced_by_the_kernel_of_the_convolution(small):
    made = network_of("t[b, o] = sum(y[b, o, i, j], i, j)", result="f32[2, 5]")
    assert stored(made) == [2 * 5 * 3, 2 * 5]


def test_so_are_long_rows_tile_by_tile(small):
    made = network_of("t[b, o] = max(y[b, o, i, j], i, j)", result="f32[2, 5]", width=500)
    assert stored(made) == [2 * 5 * 3, 2 * 5]


@pytest.mark.parametrize("width", [20, 34, 300, 1025])
def test_rows_that_suit_no_tile_are_not(small, width):
    made = network_of("t[b, o] = sum(y[b, o, i, j], i, j)", result="f32[2, 5]", width=width)
    assert stored(made) == [2 * 5 * 3 * width, 2 * 5]


def test_nor_what_is_stored_anyway(small):
    made = network_of(
        "t[b, o] = sum(y[b, o, i, j], i, j)",
        result="(f32[2, 5, 3, 60], f32[2, 5])",
        returned="y, t",
    )
    assert stored(made) == [2 * 5 * 3 * 60, 2 * 5]


def test_nor_small_results():
    made = network_of("t[b, o] = sum(y[b, o, i, j], i, j)", result="f32[2, 5]")
    assert stored(made) == [2 * 5 * 3 * 60, 2 * 5]


def test_two_indices_are_not_reduced_by_one_kernel():
    """A tile has all of one index."""
    made = network_of(
        "m[b, i, j] = max(y[b, o, i, j], o)",
        "n[b, o, i] = max(y[b, o, i, j], j)",
        "t[b, o, i, j] = m[b, i, j] + n[b, o, i]",
        result="f32[2, 5, 3, 60]",
    )
    assert len(made.steps) > 1
