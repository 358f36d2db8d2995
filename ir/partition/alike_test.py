"""Kernels are equal up to constant positions and names, and no further."""

from dataclasses import replace

from ir.parse.parse import parse_spec
from ir.partition.alike import first_parts
from ir.spec import Part
from ir.verify import facts

LAYER = '''
def {name}(w: f32[6, 8], x: f32[8, 6]) -> f32[8]:
    """{name}."""
    y[i] = w[{part}, i] * x[i, {shift}] + {term}
    return y
'''


def layer(name="one", part="1", shift="2", term="3.0"):
    return parse_spec(LAYER.format(name=name, part=part, shift=shift, term=term))


def test_other_parts_of_the_same_tensors_are_alike():
    assert first_parts(layer()) == first_parts(layer("two", part="4", shift="0"))


def test_a_part_of_a_larger_tensor_is_like_a_whole_one():
    whole = layer().outputs[0]
    part = replace(layer(), outputs=(replace(whole, part=Part(0, 8, 32)),))
    assert first_parts(part) == first_parts(layer()) and part != layer()


def test_other_terms_and_other_indices_are_not():
    assert first_parts(layer()) != first_parts(layer(term="4.0"))
    assert first_parts(layer()) != first_parts(layer(shift="2 * 1 + 0 * i"))


def test_what_stands_for_them_is_a_spec():
    assert facts(first_parts(layer())).ranges.keys() == {"i"}
