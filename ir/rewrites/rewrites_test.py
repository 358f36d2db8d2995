"""Every rewrite gives specs with the same values, and applies where it says it does."""

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ir.parse.parse import parse_spec
from ir.print import spec_text
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.rewrites import REWRITES
from ir.rewrites.small_specs import RECURRENT, WORKLOADS
from ir.rewrites.smooth_specs import smooth_specs, themed_specs
from ir.sizes import free_sizes
from ir.spec import Spec
from testing.samples.random_specs import sizes_for, specs

SMOOTH = st.one_of(smooth_specs(), themed_specs())
SEEDS = st.integers(0, 2**32)
MOST = 3  # specs of one rewrite that are evaluated for one example


def same(spec: Spec, other: Spec, sizes, seed: int) -> None:
    """Both specs give the same values, up to what float64 rounds."""
    inputs = random_inputs(spec, sizes, np.random.default_rng(seed))
    with np.errstate(all="ignore"):
        expected, found = evaluate(spec, inputs, sizes), evaluate(other, inputs, sizes)
    assert parse_spec(spec_text(other)) == other
    assert list(found) == list(expected)
    for name, array in expected.items():
        scale = max(1.0, float(np.abs(array).max(initial=0.0)))
        np.testing.assert_allclose(found[name], array, rtol=1e-7, atol=1e-7 * scale)


def some(data, found: list[Spec]) -> list[Spec]:
    """A few of the specs."""
    return data.draw(st.permutations(found))[:MOST]


@pytest.mark.parametrize("rewrite", REWRITES)
@settings(max_examples=20)
@given(data=st.data(), seed=SEEDS)
def test_rewrites_of_the_library_keep_the_values(rewrite, data, seed):
    workload = WORKLOADS[data.draw(st.sampled_from(sorted(WORKLOADS)))]
    sizes = data.draw(sizes_for(workload.spec))
    for other in some(data, REWRITES[rewrite](workload.spec)):
        same(workload.spec, other, sizes, seed)


@pytest.mark.parametrize("rewrite", REWRITES)
@settings(max_examples=20)
@given(data=st.data(), spec=SMOOTH, seed=SEEDS)
def test_rewrites_of_any_smooth_spec_keep_the_values(rewrite, data, spec, seed):
    sizes = data.draw(sizes_for(spec))
    for other in some(data, REWRITES[rewrite](spec)):
        same(spec, other, sizes, seed)


@pytest.mark.parametrize("rewrite", ["split_reduction", "merge_deviations"])
@settings(max_examples=20)
@given(data=st.data(), spec=themed_specs(), length=st.integers(120, 400), seed=SEEDS)
def test_what_has_several_parts_keeps_the_values(rewrite, data, spec, length, seed):
    sizes = {size: length if size == "K" else 2 for size in free_sizes(spec)}
    for other in some(data, REWRITES[rewrite](spec)):
        same(spec, other, sizes, seed)


@pytest.mark.parametrize("name", sorted(RECURRENT))
def test_rewrites_of_recurrences_keep_the_values(name):
    spec = RECURRENT[name].spec
    sizes = {size: 3 + n for n, size in enumerate(free_sizes(spec))}
    for rewrite in REWRITES.values():
        for other in rewrite(spec):
            same(spec, other, sizes, 5)


@given(data=st.data(), spec=SMOOTH, seed=SEEDS)
def test_several_rewrites_one_after_the_other_keep_the_values(data, spec, seed):
    spec = first = data.draw(st.sampled_from([spec, *(w.spec for w in WORKLOADS.values())]))
    sizes = data.draw(sizes_for(spec))
    for name in data.draw(st.lists(st.sampled_from(sorted(REWRITES)), max_size=4)):
        found = REWRITES[name](spec)
        spec = data.draw(st.sampled_from(found)) if found else spec
    same(first, spec, sizes, seed)


EXACT = (
    "inline_pointwise",
    "recompute",
    "share_equal",
    "name_common",
    "name_subexpression",
    "pack_input",
    "reorder_tensor",
)


@pytest.mark.parametrize("rewrite", EXACT)
@settings(max_examples=20)
@given(data=st.data(), spec=specs(), seed=SEEDS)
def test_what_moves_no_arithmetic_keeps_every_value_of_any_spec(rewrite, data, spec, seed):
    sizes = data.draw(sizes_for(spec))
    inputs = random_inputs(spec, sizes, np.random.default_rng(seed))
    for other in some(data, REWRITES[rewrite](spec)):
        with np.errstate(all="ignore"):
            found, expected = evaluate(other, inputs, sizes), evaluate(spec, inputs, sizes)
        for name, array in expected.items():
            np.testing.assert_allclose(found[name], array, rtol=1e-12)


@given(data=st.data(), spec=specs())
def test_what_is_rewritten_is_a_spec_and_reads_as_it_is_written(data, spec):
    rewrite = data.draw(st.sampled_from(sorted(REWRITES)))
    for other in REWRITES[rewrite](spec):
        assert parse_spec(spec_text(other)) == other
        assert (other.inputs, other.outputs) == (spec.inputs, spec.outputs)


@pytest.mark.parametrize("rewrite", REWRITES)
def test_each_says_what_it_does(rewrite):
    said = inspect.getdoc(REWRITES[rewrite])
    assert [word for word in ("before:", "after:", "When equal:") if word not in said] == []
