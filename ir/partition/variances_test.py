"""Variances in parts: equal results, only for large tensors, and no kernel reads a tensor twice."""

import numpy as np
import pytest

from ir.parse.parse import parse_spec
from ir.partition import variances as module
from ir.partition.partition import partition
from ir.partition.variances import with_variances_in_parts
from ir.reference.reference import evaluate, evaluate_storage
from ir.verify import facts

BATCH = '''
def f(x: f32[3, 5, 6, 7]) -> (f32[5], f32[5], f32[3, 5, 6, 7]):
    """Batch statistics, and the normalised tensor."""
    s[a]: [5] = sum(x[b, a, c, d], b=3, c=6, d=7)
    mean[e]: [5] = s[e] / 126
    t[g]: [5] = sum(square(x[h, g, k, l] - mean[g]), h=3, k=6, l=7)
    var[m]: [5] = t[m] / 126
    y[n, o, p, q]: [3, 5, 6, 7] = (x[n, o, p, q] - mean[o]) * rsqrt(var[o] + 0.001)
    return mean, var, y
'''
ROWS = '''
def f(x: bf16[4, 6, 7]) -> f32[4, 6, 7]:
    """Rows of a tensor of 16 bits, normalised."""
    s[i]: [4] = sum(f32(x[i, j, k]), j=6, k=7)
    mean[i]: [4] = s[i] / 42
    t[i]: [4] = sum(square(f32(x[i, j, k]) - mean[i]), j=6, k=7)
    y[i, j, k] = (f32(x[i, j, k]) - mean[i]) * rsqrt(t[i] / 42 + 0.001)
    return y
'''
LAST = '''
def f(x: f32[3, 4, 5]) -> f32[5]:
    """Of each element of the rows, over all rows."""
    s[k]: [5] = sum(x[i, j, k], i=3, j=4)
    mean[k]: [5] = s[k] / 12
    t[k]: [5] = sum(square(x[i, j, k] - mean[k]), i=3, j=4)
    return t
'''
OTHER = '''
def f(x: f32[3, 40], z: f32[3, 40]) -> f32[3]:
    """Deviations from the mean of another tensor."""
    s[i]: [3] = sum(z[i, j], j=40)
    mean[i]: [3] = s[i] / 40
    t[i]: [3] = sum(square(x[i, j] - mean[i]), j=40)
    return t
'''


@pytest.fixture
def small(monkeypatch):
    """Limits at which the tensors of these tests are large."""
    for name, value in {"MOST": 8, "LEAST": 4, "ROWS": 8, "OTHERS": 8}.items():
        monkeypatch.setattr(module, name, value)


def drawn(spec):
    rng = np.random.default_rng(3)
    return {
        t.name: 1000 + rng.standard_normal([int(n.value) for n in t.shape]) for t in spec.inputs
    }


@pytest.mark.parametrize(("text", "parts"), [(BATCH, [5, 3, 6]), (ROWS, [4, 6])])
def test_results_are_the_same_in_parts_that_lie_together(small, text, parts):
    spec = parse_spec(text)
    made = with_variances_in_parts(spec)
    assert [int(n.value) for n in facts(made).tensors["t_part"].shape] == parts
    given = drawn(spec)
    expected, found = evaluate(spec, given, {}), evaluate(made, given, {})
    for t in spec.outputs:
        np.testing.assert_allclose(found[t.name], expected[t.name], rtol=1e-9)


def test_no_digits_cancel_in_f32(small):
    x = (1e4 + np.random.default_rng(5).standard_normal((3, 5, 6, 7))).astype(np.float32)
    made = evaluate_storage(with_variances_in_parts(parse_spec(BATCH)), {"x": x}, {})
    np.testing.assert_allclose(made["var"], x.astype(np.float64).var((0, 2, 3)), rtol=1e-3)


@pytest.mark.parametrize("text", [LAST, OTHER])
def test_sums_whose_parts_are_short_or_of_another_tensor_stay(small, text):
    spec = parse_spec(text)
    assert with_variances_in_parts(spec) == spec


@pytest.mark.parametrize("limits", [{"OTHERS": 1 << 20}, {"MOST": 200}, {"LEAST": 8}])
def test_small_tensors_short_sums_and_short_parts_stay(small, monkeypatch, limits):
    for name, value in limits.items():
        monkeypatch.setattr(module, name, value)
    text = BATCH.replace("3,", "1,").replace("b=3", "b=1").replace("h=3", "h=1")
    spec = parse_spec(text.replace("126", "42") if "MOST" in limits else BATCH)
    assert with_variances_in_parts(spec) == spec


def test_a_large_tensor_is_read_once_for_its_variance_and_once_to_be_normalised():
    large = BATCH.replace("6, 7", "512, 512").replace("c=6, d=7", "c=512, d=512")
    large = large.replace("k=6, l=7", "k=512, l=512").replace("126", "786432")
    network = partition(parse_spec(large), {})
    assert [sum("x" == name for name in step.inputs) for step in network.steps].count(1) == 2
    first = network.steps[0].spec
    assert len(first.inputs) == 1 and {e.target.rstrip("0123456789_") for e in first.equations}


def test_rows_are_normalised_by_a_kernel_of_their_own():
    large = ROWS.replace("4, 6, 7", "2048, 512, 512").replace("[4]", "[2048]")
    large = large.replace("j=6, k=7", "j=512, k=512").replace("42", "262144")
    network = partition(parse_spec(large), {})
    assert sum("x" in step.inputs for step in network.steps) == 2 and len(network.steps) > 2
