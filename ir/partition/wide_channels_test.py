"""Convolutions with channels padded to whole vectors give the same results."""

import numpy as np
import pytest

from ir.parse.parse import parse_spec
from ir.partition.constants import divided
from ir.partition.partition import partition
from ir.partition.wide_channels import with_wide_channels
from ir.print import equation_text
from ir.reference.reference import evaluate

STEM = '''
def f(x: f32[2, 3, 9, 10], w: f32[24, 3, 4, 3], b: f32[24]) -> f32[2, 24, 4, 10]:
    """A stem of three channels, in steps of two."""
    a[n, o, i, j]: [2, 24, 4, 10] = sum(pad(x[n, c, 2 * i + r, j + s - 1], 0.0) * w[o, c, r, s], c=3, r=4, s=3)
    y[n, o, i, j] = maximum(a[n, o, i, j] + b[o], 0.0)
    return y
'''
FLAT = '''
def f(x: f32[2, 3, 9, 9, 5], w: f32[24, 3, 4, 4, 1]) -> f32[2, 24, 6, 6, 5]:
    """Taps of one element along the last dimension."""
    y[n, o, i, j, k] = sum(x[n, c, i + r, j + s, k] * w[o, c, r, s, 0], c, r, s)
    return y
'''


def drawn(spec):
    rng = np.random.default_rng(3)
    return {t.name: rng.standard_normal([int(n.value) for n in t.shape]) for t in spec.inputs}


@pytest.mark.parametrize("text", [STEM, FLAT])
def test_the_convolution_is_the_same(text):
    spec = parse_spec(text)
    wide = with_wide_channels(spec, {"w"})
    assert [e.target for e in wide.equations][:2] == ["x_wide", "w_wide"]
    inputs = drawn(spec)
    np.testing.assert_allclose(
        evaluate(wide, inputs, {})["y"], evaluate(spec, inputs, {})["y"], rtol=1e-12, atol=1e-12
    )


def test_copies_have_channels_last_and_are_summed_so():
    found = [equation_text(e) for e in with_wide_channels(parse_spec(STEM), {"w"}).equations]
    assert found[:3] == [
        "x_wide[x_wide_0, x_wide_2, x_wide_3, x_wide_1]: [2, 9, 10, 4] = where(x_wide_1 < 3, "
        "pad(x[x_wide_0, x_wide_1, x_wide_2, x_wide_3], 0.0), 0.0)",
        "w_wide[w_wide_0, w_wide_2, w_wide_3, w_wide_1]: [24, 4, 3, 4] = where(w_wide_1 < 3, "
        "pad(w[w_wide_0, w_wide_1, w_wide_2, w_wide_3], 0.0), 0.0)",
        "a[n, o, i, j]: [2, 24, 4, 10] = sum(pad(x_wide[n, 2 * i + r, j + s - 1, c], 0.0) * "
        "w_wide[o, r, s, c], r=4, s=3, c=4)",
    ]


TWO = '''
def f(x: f32[2, 3, 9, 10], w: f32[24, 3, 4, 3]) -> f32[2, 24, 4, 10]:
    """Two convolutions of one tensor, by one filter."""
    a[n, o, i, j]: [2, 24, 4, 10] = sum(pad(x[n, c, 2 * i + r, j + s - 1], 0.0) * w[o, c, r, s], c=3, r=4, s=3)
    b[n, o, i, j]: [2, 24, 4, 10] = sum(pad(x[n, c, 2 * i + r, j + s], 0.0) * w[o, c, r, s], c=3, r=4, s=3)
    y[n, o, i, j] = a[n, o, i, j] + b[n, o, i, j]
    return y
'''


def test_two_convolutions_share_copies():
    made = with_wide_channels(parse_spec(TWO), {"w"}).equations
    assert [e.target for e in made] == ["x_wide", "w_wide", "a", "b", "y"]


def test_the_filter_is_a_constant_and_the_copy_a_kernel_of_its_own():
    parts = divided(parse_spec(STEM), {}, {"w"}, wide=True)
    assert [e.target for e in parts.before.equations] == ["w_wide"]
    network = partition(parts.call, {})
    assert [len(step.spec.equations) for step in network.steps] == [1, 2]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("3, 9, 10", "4, 9, 10"),  # a vector already
        ("3, 9, 10", "5, 9, 10"),  # too many more
        ("4, 3], b", "3, 3], b"),  # one step of a product takes all that is summed
        ("24", "16"),  # few results
    ],
)
def test_others_stay(old, new):
    text = STEM.replace(old, new)
    if old == "3, 9, 10":
        text = text.replace("24, 3,", f"24, {new[0]},").replace("c=3", f"c={new[0]}")
    if old == "4, 3], b":
        text = text.replace("r=4", "r=3")
    spec = parse_spec(text)
    assert with_wide_channels(spec, {"w"}) == spec


def test_of_16_bits_they_stay():
    spec = parse_spec(STEM.replace("f32", "f16"))
    assert with_wide_channels(spec, {"w"}) == spec


def test_one_product_reads_what_there_is():
    spec = parse_spec(STEM)
    assert with_wide_channels(spec, {"w"}, {"a"}) == spec


def test_a_filter_that_changes_is_not_copied():
    spec = parse_spec(STEM)
    assert with_wide_channels(spec, ()) == spec
