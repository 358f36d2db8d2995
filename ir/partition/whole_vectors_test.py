"""K dimensions padded to whole vectors give the same matmuls."""

import numpy as np
import pytest

from ir.parse.parse import parse_spec
from ir.partition.partition import partition
from ir.partition.whole_vectors import with_whole_vectors
from ir.print import equation_text
from ir.reference.reference import evaluate

MATMUL = '''
def f(x: f32[513, 67], w: f32[67, 514], b: f32[514]) -> f32[513, 514]:
    """A matmul whose rows end within a vector."""
    a[i, j] = sum(x[i, k] * w[k, j], k)
    y[i, j] = maximum(a[i, j] + b[j], 0.0)
    return y
'''


def test_sums_run_to_the_next_vector():
    first, _ = with_whole_vectors(parse_spec(MATMUL)).equations
    assert equation_text(first) == "a[i, j] = sum(pad(x[i, k], 0.0) * pad(w[k, j], 0.0), k=68)"


def test_the_matmul_is_the_same():
    spec = parse_spec(MATMUL)
    rng = np.random.default_rng(3)
    inputs = {t.name: rng.standard_normal([int(n.value) for n in t.shape]) for t in spec.inputs}
    found = evaluate(with_whole_vectors(spec), inputs, {})["y"]
    np.testing.assert_allclose(found, evaluate(spec, inputs, {})["y"], rtol=1e-12, atol=1e-12)


def test_the_epilogue_stays_in_its_kernel():
    assert len(partition(with_whole_vectors(parse_spec(MATMUL)), {}).steps) == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("67", "68"),  # whole vectors already
        ("67", "63"),  # short sums
        ("514", "511"),  # few columns
        ("513", "511"),  # few rows
        ("f32", "f16"),
        ("sum(x[i, k]", "max(x[i, k]"),
    ],
)
def test_others_stay(old, new):
    spec = parse_spec(MATMUL.replace(old, new))
    assert with_whole_vectors(spec) == spec


def test_what_is_computed_is_not_copied():
    text = MATMUL.replace("a[i, j] = sum(x[i", "u[i, k] = exp(x[i, k])\n    a[i, j] = sum(u[i")
    spec = parse_spec(text)
    assert with_whole_vectors(spec) == spec
