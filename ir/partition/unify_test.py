"""Specs that differ only in sizes unify to one spec, which gives each of them at its sizes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir.literal import literal
from ir.parse.parse import parse_spec
from ir.partition.unify import unified
from ir.spec import Number, Size

MEAN = '''def mean_{name}(x: f32[{m}, {k}], g: f32[{k}]) -> f32[{m}]:
    """Mean of the scaled rows."""
    s[i]: [{m}] = sum(x[i, j] * g[j], j)
    y[i] = s[i] / {k}
    return y
'''


def mean(m, k, name="a", text=MEAN):
    return parse_spec(text.format(m=m, k=k, name=name))


@given(st.lists(st.tuples(st.integers(2, 99), st.integers(2, 99)), min_size=1, max_size=4))
def test_it_is_each_of_the_specs_at_its_sizes(shapes):
    specs = [mean(m, k) for m, k in shapes]
    found = unified(specs)
    assert found is not None, "they differ in sizes only"
    for spec, sizes in zip(specs, found.sizes, strict=True):
        assert literal(found.spec, sizes) == literal(spec, {})


def test_what_is_the_same_in_all_stays_a_number():
    found = unified([mean(4, 8, "a"), mean(6, 8, "b")])
    assert found.sizes == ({"S0": 4}, {"S0": 6})
    assert found.spec.inputs[0].shape == (Size("S0"), Number(8))
    assert found.spec.name == "mean_a"


def test_equal_numbers_are_one_size():
    found = unified([mean(4, 4), mean(6, 6)])
    assert found.sizes == ({"S0": 4}, {"S0": 6})


@pytest.mark.parametrize(
    "before, after",
    [
        ("x[i, j] * g[j]", "x[i, j] + g[j]"),
        ("f32", "f16"),
        ("/ {k}", "/ {k}.5"),
        ("s[i] / {k}", "s[i]"),
    ],
)
def test_specs_that_differ_in_more_are_not_one(before, after):
    assert unified([mean(4, 8), mean(6, 9, text=MEAN.replace(before, after))]) is None


def test_a_number_that_no_tensor_tells_is_no_size():
    plus = MEAN.replace("s[i] / {k}", "s[i] + {k}")
    plus = plus.replace("{m}, {k}", "{m}, 7").replace("[{k}]", "[7]")
    assert unified([mean(4, 8, text=plus), mean(6, 9, text=plus)]) is None
