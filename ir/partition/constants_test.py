"""Constants are split off the call, and both together compute the whole spec."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ir.literal import literal
from ir.parse.parse import parse_spec
from ir.partition.constants import divided
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from testing.samples.random_specs import sizes_for, specs

NORM = '''def norm(x: f32[3, 4], v: f32[4], w: f32[5, 4], p: f32[4]) -> (f32[3, 5], f32[4]):
    """A normalisation and a projection, and a result that is of a parameter alone."""
    r[c] = rsqrt(abs(v[c]) + 1.0)
    transposed[c, o] = w[o, c]
    s[c, o] = transposed[c, o] * r[c]
    y[n, o] = sum(x[n, c] * s[c, o], c)
    q[c] = p[c] * r[c]
    return y, q
'''


def names(spec):
    return [e.target for e in spec.equations]


def test_parameters_are_apart():
    parts = divided(parse_spec(NORM), {}, {"v", "w", "p"})
    assert names(parts.before) == ["r", "s"]
    assert names(parts.call) == ["y", "q"]
    assert [t.name for t in parts.before.inputs] == ["v", "w"]
    assert [t.name for t in parts.before.outputs] == ["r", "s"]
    assert [t.name for t in parts.call.inputs] == ["x", "p", "r", "s"]


def test_nothing_is_apart_where_nothing_is_fixed_or_only_views_are():
    assert divided(parse_spec(NORM), {}, set()) is None
    view = parse_spec(
        '''def view(x: f32[3], w: f32[3, 4]) -> f32[4, 3]:
    """A view of a parameter."""
    t[i, j] = w[j, i]
    y[i, j] = t[i, j] * x[j]
    return y
'''
    )
    assert divided(view, {}, {"w"}) is None


BIAS = '''def bias(x: f32[3, 3], w: f32[5, 2]) -> (f32[2, 3, 3], i64[3, 3]):
    """A table that is read at places which are of no input, and the places, added."""
    c[i]: [3] = i64(i) * 2
    d[i, j]: [3, 3] = abs(c[i] - c[j])
    b[h, i, j]: [2, 3, 3] = w[d[i, j], h] * 2.0
    y[h, i, j] = x[i, j] + b[h, i, j]
    z[i, j] = d[i, j] + 1
    return y, z
'''


def test_what_is_of_no_input_is_computed_on_both_sides_where_both_read_it():
    parts = divided(parse_spec(BIAS), {}, {"w"})
    assert names(parts.before) == ["d", "b"]
    assert names(parts.call) == ["d", "y", "z"]
    agree(literal(parse_spec(BIAS), {}), {"w"})


@given(st.data(), specs())
def test_the_parts_of_any_spec_compute_the_whole(data, spec):
    spec = literal(spec, data.draw(sizes_for(spec)))
    names = [t.name for t in spec.inputs]
    fixed = data.draw(st.sets(st.sampled_from(names)) if names else st.just(set()))
    agree(spec, fixed)


@given(st.sets(st.sampled_from("xvwp")))
def test_so_do_those_of_a_normalisation(fixed):
    agree(parse_spec(NORM), fixed)


def agree(spec, fixed):
    """Both parts give what the whole gives, in float64."""
    parts = divided(spec, {}, fixed)
    if parts is None:
        return
    assert {t.name for t in parts.before.inputs} <= fixed
    inputs = random_inputs(spec, {}, np.random.default_rng(1))
    expected = evaluate(spec, inputs, {})
    given = inputs | evaluate(parts.before, of(parts.before, inputs), {})
    found = evaluate(parts.call, of(parts.call, given), {})
    for name, x in expected.items():
        np.testing.assert_allclose(found[name], x, rtol=1e-9, atol=1e-9)


def of(spec, held):
    return {t.name: held[t.name] for t in spec.inputs}
