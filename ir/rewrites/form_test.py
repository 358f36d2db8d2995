"""Specs have the same form if they differ in names only."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ir.rewrites import REWRITES
from ir.rewrites.form import form_digest
from ir.rewrites.small_specs import WORKLOADS, spec_of
from ir.visit import reindexed, rereading
from testing.samples.random_specs import specs

X, R, S = "x: f32[M, K]", "f32[M, K]", "f32[M]"

SAME = {
    "tensors": "u[m] = sum(x[m, k], k); y[m] = u[m] * 2.0",
    "indices": "t[n] = sum(x[n, j], j); y[m] = t[m] * 2.0",
}
OTHER = {
    "numbers": "t[m] = sum(x[m, k], k); y[m] = t[m] * 3.0",
    "order of positions": "t[m] = sum(x[k, m], k); y[m] = t[m] * 2.0",
    "ranges": "t[m] = sum(x[m, k], k=2); y[m] = t[m] * 2.0",
    "a copy": "t[m] = sum(x[m, k], k); u[m] = t[m] * 1.0; y[m] = u[m] * 2.0",
}
FIRST = "t[m] = sum(x[m, k], k); y[m] = t[m] * 2.0"


@pytest.mark.parametrize("what", SAME)
def test_names_of_do_not_matter(what):
    assert form_digest(spec_of(SAME[what], X, S)) == form_digest(spec_of(FIRST, X, S))


@pytest.mark.parametrize("what", OTHER)
def test_these_matter(what):
    signature = {"order of positions": "x: f32[M, M]", "ranges": "x: f32[M, 4]"}.get(what, X)
    first = form_digest(spec_of(FIRST, signature, S))
    assert form_digest(spec_of(OTHER[what], signature, S)) != first


def test_the_order_of_independent_equations_does_not_matter():
    one = "a[m] = sum(x[m, k], k); b[m] = max(x[m, k], k); y[m] = a[m] / b[m]"
    two = "b[m] = max(x[m, k], k); a[m] = sum(x[m, k], k); y[m] = a[m] / b[m]"
    swapped = "a[m] = max(x[m, k], k); b[m] = sum(x[m, k], k); y[m] = a[m] / b[m]"
    first = form_digest(spec_of(one, X, S))
    assert form_digest(spec_of(two, X, S)) == first
    assert form_digest(spec_of(swapped, X, S)) != first


@settings(max_examples=50)
@given(spec=specs())
def test_other_names_give_the_same_form(spec):
    kept = {t.name for t in (*spec.inputs, *spec.outputs)}
    names = {e.target: f"{e.target}_z" for e in spec.equations if e.target not in kept}

    def said(expr):
        return rereading(reindexed(expr, lambda i: f"{i}_z"), names)

    lines = tuple(
        replace(
            e, target=names.get(e.target, e.target), at=tuple(map(said, e.at)), value=said(e.value)
        )
        for e in spec.equations
    )
    assert form_digest(replace(spec, equations=lines)) == form_digest(spec)


@given(data=st.data())
def test_a_rewrite_gives_another_form(data):
    spec = WORKLOADS[data.draw(st.sampled_from(sorted(WORKLOADS)))].spec
    found = REWRITES[data.draw(st.sampled_from(sorted(REWRITES)))](spec)
    assert form_digest(spec) not in map(form_digest, found)
