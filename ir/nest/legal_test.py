"""Renamed nests have the same meaning, whatever names a language refuses."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from ir.nest.legal import legal
from testing.samples.right import require_right
from testing.samples.samples import SMALL, lowered, spec_of, workload

KERNELS = ("softmax", "embedding_bag", "conv1d", "cumsum")


def whole(name):
    """The identifiers that a text has for a name: the name alone."""
    return (name,)


def names(nest):
    """The names of a nest's tensors and sizes."""
    tensors = [p.name for launch in nest.launches for p in launch.parameters]
    return {*tensors, *(s for launch in nest.launches for s in launch.sizes)}


def nest_of(kernel):
    work = workload(kernel)
    sizes = work.checks[1]
    return lower(work.spec, autoschedule(work.spec, SMALL, sizes), SMALL, sizes), sizes


@settings(max_examples=12, deadline=None)
@given(st.sampled_from(KERNELS), st.data())
def test_a_nest_under_other_names_computes_the_same(kernel, data):
    nest, sizes = nest_of(kernel)
    refused = data.draw(st.sets(st.sampled_from(sorted(names(nest) | {"m", "n", "k"}))))
    made = legal(nest, refused.__contains__, whole)
    assert not names(made) & refused
    assert len(names(made)) == len(names(nest))
    given_sizes = dict(zip(dict(made.sizes), sizes.values(), strict=True))
    require_right(made, given_sizes)


def test_a_nest_of_legal_names_is_itself():
    nest, _ = nest_of("softmax")
    assert legal(nest, lambda _: False, whole) is nest


def test_names_whose_identifiers_meet_get_other_ones():
    spec = spec_of("y[m] = x[m] + x_ptr[m]", inputs="x: f32[M], x_ptr: f32[M]", result="f32[M]")
    nest = lowered(spec, sizes={"M": 9})

    def spells(name):
        return (name, f"{name}_ptr")

    made = legal(nest, lambda _: False, spells)
    assert [t.name for t in made.spec.inputs] == ["x", "x_ptr_"]
    require_right(made, {"M": 9})


def test_a_kernel_and_its_launches_keep_their_names():
    nest, _ = nest_of("softmax")
    made = legal(nest, lambda n: n.startswith("softmax"), whole)
    assert made.spec.name == nest.spec.name
    assert [la.name for la in made.launches] == [la.name for la in nest.launches]


def test_a_language_that_refuses_all_similar_names_is_named():
    nest, _ = nest_of("softmax")
    with pytest.raises(ValueError, match="no name for `x`: the language refuses x, x_, x_x and"):
        legal(nest, lambda n: "x" in n.lower(), whole)
