"""Channels last: tensors between convolutions share one layout, and results are unchanged."""

from __future__ import annotations

import numpy as np
import pytest

from ir.parse.parse import parse_spec
from ir.partition.channels_last import with_channels_last
from ir.partition.constants import divided
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.sizes import shape
from ir.spec import Spec
from ir.verify import facts

NET = '''
def f(
    x: f32[2, 3, 9, 7], w: f32[4, 3, 3, 3], s: f32[4], d: f32[4, 3, 3], p: f32[5, 4], u: f32[4, 9, 1, 3],
) -> (f32[2, 4, 5, 4], f32[2, 9]):
    """A stem, a depthwise and a pointwise convolution, a pool, a concatenation, and one with few taps."""
    a[b, o, i, j]: [2, 4, 9, 7] = sum(pad(x[b, c, i + r - 1, j + t - 1], 0.0) * w[o, c, r, t], c, r, t)
    h[b, o, i, j] = maximum(a[b, o, i, j] * s[o], 0.0)
    e[b, o, i, j]: [2, 4, 9, 7] = sum(pad(h[b, o, i + r - 1, j + t - 1], 0.0) * d[o, r, t], r, t)
    g[b, n, i, j]: [2, 5, 9, 7] = sum(e[b, o, i, j] * p[n, o], o)
    k[b, l, i, j]: [2, 9, 9, 7] = where(l < 4, pad(h[b, l, i, j], 0.0), pad(g[b, l - 4, i, j], 0.0))
    q[b, l, v, z]: [2, 9, 5, 4] = max(pad(k[b, l, 2 * v + r - 1, 2 * z + t - 1], -inf), r=3, t=3)
    y[b, o, v, z]: [2, 4, 5, 4] = sum(pad(q[b, l, v + f, z + t - 1], 0.0) * u[o, l, f, t], l, f, t)
    m[b, l] = sum(q[b, l, v, z], v, z)
    return y, m
'''
FIXED = {"w", "s", "d", "p", "u"}


def same(spec: Spec, made: Spec) -> None:
    facts(made)
    given = random_inputs(spec, {}, np.random.default_rng(2))
    expected, found = evaluate(spec, given, {}), evaluate(made, given, {})
    for t in spec.outputs:
        np.testing.assert_allclose(found[t.name], expected[t.name], rtol=1e-9, atol=1e-12)


def test_what_lies_between_convolutions_has_its_channels_last():
    spec = parse_spec(NET)
    made = with_channels_last(spec, {}, FIXED)
    same(spec, made)
    tensors = facts(made).tensors
    last = {t: shape(tensors[t], {})[-1] for t in "ahegkq"}
    assert last == {"a": 4, "h": 4, "e": 4, "g": 5, "k": 9, "q": 9}
    assert shape(tensors["y"], {}) == (2, 4, 5, 4) and shape(tensors["x"], {}) == (2, 3, 9, 7)
    filters = {t: shape(tensors[f"{t}_last"], {}) for t in "wdu"}
    assert filters == {"w": (4, 3, 3, 3), "d": (3, 3, 4), "u": (4, 1, 3, 9)}


def test_filters_are_packed_before_calls():
    parts = divided(parse_spec(NET), {}, FIXED, channels_last=True)
    assert parts is not None
    assert {t.name for t in parts.before.outputs} == {"w_last", "d_last", "u_last"}
    assert {t.name for t in parts.call.inputs} == {"x", "s", "p", "w_last", "d_last", "u_last"}


def test_filters_that_change_between_calls_stay_where_they_are():
    spec = parse_spec(NET)
    made = with_channels_last(spec, {}, FIXED - {"w", "p"})
    same(spec, made)
    assert "w_last" not in facts(made).tensors


@pytest.mark.parametrize("kept", ["h", "k"])
def test_what_is_seen_under_another_shape_keeps_its_layout(kept):
    spec = parse_spec(NET)
    made = with_channels_last(spec, {"view": kept}, FIXED)
    same(spec, made)
    before, after = facts(spec).tensors[kept], facts(made).tensors[kept]
    assert (
        before.shape == after.shape
        and facts(made).tensors["q"].shape != facts(spec).tensors["q"].shape
    )


def test_a_tensor_whose_channels_are_another_dimension_for_another_reader_stays():
    spec = parse_spec(
        """
def f(x: f32[1, 3, 5, 5], w: f32[5, 3, 3, 3], u: f32[2, 5, 3, 3]) -> (f32[1, 2, 3, 3], f32[1, 2, 3, 3]):
    \"\"\"Two convolutions of one tensor, along different dimensions.\"\"\"
    a[b, o, i, j]: [1, 5, 5, 5] = sum(pad(x[b, c, i + r - 1, j + t - 1], 0.0) * w[o, c, r, t], c, r, t)
    y[b, n, v, z]: [1, 2, 3, 3] = sum(a[b, o, v + r, z + t] * u[n, o, r, t], o, r, t)
    q[b, n, v, z]: [1, 2, 3, 3] = sum(a[b, v + r, o, z + t] * u[n, o, r, t], o, r, t)
    return y, q
"""
    )
    made = with_channels_last(spec, {}, {"w", "u"})
    same(spec, made)
    assert facts(made).tensors["a"].shape == facts(spec).tensors["a"].shape


def test_a_spec_without_convolutions_stays_as_it_is():
    spec = parse_spec(
        'def f(x: f32[2, 3, 4], w: f32[5, 3]) -> f32[2, 5, 4]:\n    """F."""\n'
        "    y[b, o, i] = sum(x[b, c, i] * w[o, c], c)\n    return y\n"
    )
    assert with_channels_last(spec, {}, {"w"}) is spec
