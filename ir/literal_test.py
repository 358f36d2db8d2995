"""A literal spec computes what the spec computes at its sizes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ir.literal import literal
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.sizes import free_sizes
from testing.samples.random_specs import sizes_for, specs
from testing.samples.samples import workload


@given(st.data(), specs())
def test_results_are_the_same(data, spec):
    sizes = data.draw(sizes_for(spec))
    made = literal(spec, sizes)
    inputs = random_inputs(spec, sizes, np.random.default_rng(1))
    expected, found = evaluate(spec, inputs, sizes), evaluate(made, inputs, {})
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)


def test_no_size_and_no_attribute_is_left():
    found = workload("pffn")
    made = literal(found.spec, found.tune)
    assert free_sizes(made) == () and not made.attributes
