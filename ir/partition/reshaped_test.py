"""Epilogues that read a contraction through a view join it; others are unchanged."""

import numpy as np
import pytest

from ir.parse.parse import parse_spec
from ir.partition.partition import partition
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.reference.stepwise import evaluate as stepwise

INPUTS = {"x": "f32[2, 5, 6]", "a": "f32[10, 4]", "w": "f32[4, 6]", "g": "f32[6]", "h": "f32[5]"}
INPUTS |= {"z": "f32[2, 7, 6]"}
FIRST = (
    "c[p, n] = sum(a[p, k] * w[k, n], k)",
    "v[i, s, n]: [2, 5, 6] = c[i * 5 + s, n]",
)


def network_of(*lines):
    """The network of equations that read `v`, which shows a matmul; it computes what they say."""
    text = "\n".join(f"    {line}" for line in (*FIRST, *lines, "return y"))
    used = (f"{name}: {kind}" for name, kind in INPUTS.items() if f"{name}[" in text)
    spec = parse_spec(f'def f({", ".join(used)}) -> f32[2, 5, 6]:\n    """F."""\n{text}\n')
    network = partition(spec, {}, {"v": "c"})
    given = random_inputs(spec, {}, np.random.default_rng(len(lines)))
    (found,) = stepwise(network, given)
    np.testing.assert_allclose(found, evaluate(spec, given, {})["y"], rtol=1e-12)
    return network


@pytest.mark.parametrize(
    "lines",
    [
        ("y[i, s, n] = gelu(v[i, s, n])",),
        ("y[i, s, n] = v[i, s, n] + x[i, s, n]",),
        ("y[i, s, n] = v[i, s, n] * g[n] + f32(n)",),
        ("b[i, s, n] = silu(v[i, s, n])", "y[i, s, n] = b[i, s, n] * x[i, s, n] + v[i, s, n]"),
        ("y[i, s, n] = v[i, s, n] * v[i, s, n]",),
    ],
)
def test_an_epilogue_joins_the_contraction(lines):
    assert len(network_of(*lines).steps) == 1


@pytest.mark.parametrize(
    "lines",
    [
        ("y[i, s, n] = v[i, s, n] + h[s]",),  # by an index that is merged
        ("y[i, s, n] = v[i, s, n] + f32(s)",),
        ("y[i, s, n] = v[i, s, n] + v[i, s, 5 - n]",),  # at other places
        ("y[i, s, n] = v[i, 4 - s, n]",),
        ("y[i, s, n] = v[i, s, n] + z[i, s, n]",),  # a part of a larger tensor
    ],
)
def test_what_needs_its_own_shape_stays(lines):
    assert len(network_of(*lines).steps) == 2


def test_what_is_reduced_reads_the_epilogue_through_its_shape():
    network = network_of(
        "r[i, s, n] = v[i, s, n] + x[i, s, n]",
        "m[i, s] = max(r[i, s, n], n)",
        "y[i, s, n] = r[i, s, n] - m[i, s]",
    )
    assert [len(step.spec.equations) for step in network.steps] == [2, 2]
