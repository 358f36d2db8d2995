"""Sampled rows of a large spec equal those of the whole."""

import numpy as np
import pytest

from ir.parse.parse import parse_spec
from ir.reference import rows as module
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate, evaluate_storage
from ir.reference.rows import WHOLE, rows

GELU = '''def gelu_of(x: f32[M, K], w: f32[N, K], b: f32[N]) -> f32[M, N]:
    """A layer."""
    p[i, j] = sum(x[i, k] * w[j, k], k)
    y[i, j] = gelu(p[i, j] + b[j])
    return y
'''
CENTRED = '''def centred(x: f32[M, K]) -> (f32[M, K], f32[K]):
    """Rows less the mean of their column, which needs all of them."""
    d[i, k] = x[i, k] * 2.0
    s[k] = sum(d[i, k], i)
    y[i, k] = d[i, k] - s[k] / M
    return y, s
'''
SHIFTED = '''def shifted(x: f32[M, K]) -> f32[M, K]:
    """Each row with the one before."""
    d[i, k] = x[i, k] * 2.0
    y[i, k] = d[i, k] + pad(d[i - 1, k], 0.0)
    return y
'''
SCANNED = '''def scanned(x: f32[M, K]) -> f32[M, K]:
    """Sums along the rows' axis."""
    y[i, k] = cumsum(x[i, k], i)
    return y
'''
TOTAL = '''def total(x: f32[M, K]) -> f32[()]:
    """One number."""
    s[()] = sum(x[i, k], i, k)
    return s
'''
HALVES = '''def halves(x: f16[M, K]) -> (f16[M, K], i32[M]):
    """A row scaled, and its largest place."""
    best[i] = argmax(x[i, k], k)
    y[i, k] = f16(f32(x[i, k]) / 3.0)
    return y, best
'''
ATTENTION = '''def attention_of(q: f16[M, L, K], k: f16[M, L, K], v: f16[M, L, K]) -> f16[M, L, K]:
    """Scores without a softmax, of which each value takes all."""
    s[b, i, j] = sum(f32(q[b, i, d]) * f32(k[b, j, d]), d)
    t[b, i, d] = sum(s[b, i, j] * f32(v[b, j, d]), j)
    y[b, i, d] = f16(t[b, i, d])
    return y
'''
SIZES = {"M": 64, "K": 6, "N": 5, "L": 40}


@pytest.fixture(autouse=True)
def nothing_is_affordable(monkeypatch):
    monkeypatch.setattr(module, "AFFORDABLE_WORK", 1)


def _case(text, **sizes):
    spec = parse_spec(text)
    names = {n.name for t in (*spec.inputs, *spec.outputs) for e in t.shape for n in e.walk()}
    sizes = {n: s for n, s in (SIZES | sizes).items() if n in names}
    return spec, sizes, random_inputs(spec, sizes, np.random.default_rng(0))


@pytest.mark.parametrize("text", [GELU, CENTRED, SHIFTED, SCANNED, TOTAL, HALVES, ATTENTION])
@pytest.mark.parametrize("evaluated", [evaluate, evaluate_storage])
@pytest.mark.parametrize("m", [1, 2, 64])
@pytest.mark.parametrize("most", [1, 1 << 28])
@pytest.mark.parametrize("more", [False, True])
def test_rows_are_those_of_the_whole(monkeypatch, text, evaluated, m, most, more):
    monkeypatch.setattr(module, "SAMPLED_WORK", most)
    spec, sizes, inputs = _case(text, M=m)
    some = rows(spec, sizes, 3, more=more)
    found, whole = evaluated(spec, inputs, sizes, some), evaluated(spec, inputs, sizes)
    for name, output in whole.items():
        expected = some.taken(name, output)
        np.testing.assert_allclose(found[name], expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("text", "partly"),
    [
        (GELU, {"x", "p", "y"}),
        (CENTRED, {"y"}),
        (SHIFTED, {"y"}),
        (SCANNED, set()),
        (TOTAL, set()),
        (HALVES, {"x", "y", "best"}),
    ],
)
def test_what_is_read_by_row_is_evaluated_by_row(text, partly):
    spec, sizes, _ = _case(text)
    some = rows(spec, sizes, 3)
    assert set(some.tensors) == partly
    assert set(some.outputs) == partly & {t.name for t in spec.outputs}


def test_the_first_and_the_last_row_are_among_them():
    spec, sizes, _ = _case(GELU)
    (at,) = rows(spec, sizes, 3).outputs["y"].values()
    assert at[0] == 0 and at[-1] == sizes["M"] - 1
    assert len(at) < sizes["M"] and len(set(at)) == len(at) and list(at) == sorted(at)
    (other,) = rows(spec, sizes, 4).outputs["y"].values()
    assert list(at) != list(other)


def test_other_axes_are_sampled_where_rows_are_much_work(monkeypatch):
    monkeypatch.setattr(module, "SAMPLED_WORK", 1)
    spec, sizes, _ = _case(ATTENTION)
    some = rows(spec, sizes, 3)
    first, queries = some.outputs["y"][0], some.outputs["y"][1]
    assert first[0] == 0 and first[-1] == 63 and queries[0] == 0 and queries[-1] == 39
    assert set(some.tensors["s"]) == {0, 1}, "whole along what is added"
    assert set(some.tensors["q"]) == {0, 1} and set(some.tensors["k"]) == {0}
    assert set(some.tensors["v"]) == {0, 2} and set(some.tensors["y"]) == {0, 1, 2}
    assert module.sampled_work(spec, sizes, 3) < 0.02 * sum(
        module.iterations(spec, e, sizes) for e in spec.equations
    )


def test_what_is_affordable_is_whole(monkeypatch):
    monkeypatch.setattr(module, "AFFORDABLE_WORK", 1 << 31)
    spec, sizes, _ = _case(GELU)
    assert rows(spec, sizes, 3) == WHOLE
    monkeypatch.setattr(module, "AFFORDABLE_ENTRIES", 1)
    assert rows(spec, sizes, 3).outputs


@pytest.mark.parametrize("seed", range(20))
def test_a_kernel_that_leaves_out_a_twentieth_of_the_rows_is_found(monkeypatch, seed):
    monkeypatch.setattr(module, "AFFORDABLE_WORK", 1 << 20)
    layer = parse_spec(GELU)
    for spec, sizes in (
        (parse_spec(HALVES), {"M": 4096, "K": 4096}),
        (layer, {"M": 4096, "K": 1024, "N": 1024}),
    ):
        (at,) = rows(spec, sizes, seed, more=True).outputs["y"].values()
        few = rows(spec, sizes, seed).outputs["y"][0]
        assert len(at) > 3 * len(few) and at[0] == 0 and at[-1] == 4095
        assert len(set(at // 205)) >= 18, "of each twentieth some, but for chance"


def test_more_rows_take_no_more_work_than_is_allowed(monkeypatch):
    monkeypatch.setattr(module, "AFFORDABLE_WORK", 1 << 20)
    spec, sizes = parse_spec(GELU), {"M": 4096, "K": 4096, "N": 4096}
    few = rows(spec, sizes, 3)
    for most in (1, 1 << 18, 1 << 23):
        monkeypatch.setattr(module, "MORE_WORK", most)
        found = rows(spec, sizes, 3, more=True)
        if found.tensors != few.tensors:
            assert module._work(spec, sizes, found.tensors, module.MATMUL) <= most
    assert found.tensors != few.tensors


@pytest.mark.parametrize("length", [1, 2, 5, 23, 24, 60, 97, 1000])
@pytest.mark.parametrize("seed", range(20))
def test_runs_do_not_overlap_and_have_both_ends(length, seed):
    found = module._runs(length, 96, 3, np.random.default_rng(seed))
    assert found[0].start == 0 and found[-1].stop == length
    assert all(a.stop <= b.start for a, b in zip(found, found[1:], strict=False))
