"""Layouts as functions, and their text."""

import itertools
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.gpu.layout.layout import (
    Layout,
    column_major,
    concatenate,
    flatten,
    row_major,
)
from backends.gpu.layout.strategies import layouts, shapes
from backends.gpu.layout.swizzle import ComposedLayout, Swizzle
from backends.gpu.layout.text import parse, parse_layout
from ir.errors import KernelError

SWIZZLES = st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(3, 6), st.booleans()).map(
    lambda s: Swizzle(s[0], s[1], -s[2] if s[3] else s[2])
)


def coordinates(shape):
    """All coordinates of a shape, nested as it is, the first mode fastest."""
    if isinstance(shape, int):
        return list(range(shape))
    found = itertools.product(*(coordinates(one) for one in reversed(shape)))
    return [tuple(reversed(c)) for c in found]


def dot(coordinate, stride):
    """A layout by its definition."""
    return sum(c * d for c, d in zip(flatten(coordinate), flatten(stride)))


@given(layouts())
def test_a_layout_is_the_sum_of_coordinates_times_strides(layout):
    natural = coordinates(layout.shape)
    wanted = [dot(c, layout.stride) for c in natural]
    assert [layout(c) for c in natural] == wanted
    assert [layout(i) for i in range(layout.size)] == wanted == layout.indices()
    assert [layout.coordinate(i) for i in range(layout.size)] == natural
    assert layout.size == len(natural) and layout.cosize == max(wanted) + 1


@given(layouts())
def test_each_mode_takes_a_linear_coordinate_of_its_own(layout):
    for linear in itertools.product(*(range(mode.size) for mode in layout)):
        assert layout(*linear) == sum(mode(c) for mode, c in zip(layout, linear))


@given(shapes())
def test_compact_layouts_number_all_elements(shape):
    last = row_major(shape)
    assert column_major(shape).indices() == list(range(prod(flatten(shape))))
    assert [last(c) for c in sorted(coordinates(shape))] == list(range(last.size))


def test_row_major_gives_the_last_mode_stride_1():
    assert str(row_major((4, 8))) == "(4,8):(8,1)"
    assert str(column_major((4, (2, 3)))) == "(4,(2,3)):(1,(4,8))"
    assert str(concatenate(Layout(4, 2), row_major((2, 3)))) == "(4,(2,3)):(2,(3,1))"


@given(layouts(), SWIZZLES, st.integers(0, 64))
def test_what_prints_parses(layout, swizzle, offset):
    for value in (layout, swizzle, ComposedLayout(swizzle, offset, layout)):
        assert parse(str(value)) == value


def test_text_may_have_blanks():
    assert parse(" (4, 8) : (8, 1) ") == row_major((4, 8))
    assert str(parse("Sw<3,4,3> o 0 o (8,64):(64,1)")) == "Sw<3,4,3> o 0 o (8,64):(64,1)"


@pytest.mark.parametrize(
    "text",
    ["", "4", "4:", ":4", "(4,8):(8", "(4,8):(8,1):2", "a:b", "4.0:1", "Sw<3,4>"]
    + ["Sw<3,4,3> o (4,8):(8,1)", "Sw<3,4,3> o -1 o 4:1", "(4 8):(1 2)", "04:1"],
)
def test_a_text_that_is_no_layout_is_refused(text):
    with pytest.raises(KernelError, match="is no layout"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("(4,8):1", "differ in form"),
        ("4:(1,2)", "differ in form"),
        ("():()", "differ in form"),
        ("(4,(2,2)):(1,2)", "differ in form"),
        ("(4,0):(1,4)", "is no layout"),
    ],
)
def test_shape_and_stride_that_do_not_fit_are_refused(text, fault):
    with pytest.raises(KernelError, match=fault) as caught:
        parse_layout(text)
    assert text in str(caught.value)


def test_negative_strides_are_refused():
    with pytest.raises(KernelError, match="no layout"):
        Layout(4, -1)
    with pytest.raises(KernelError, match="differ in form"):
        Layout(4, 1.0)


@pytest.mark.parametrize("coordinate", [(32,), (-1,), (4, 0), (0, 8), (0, 0, 0), (0, (1, 2))])
def test_a_coordinate_outside_of_the_shape_is_refused(coordinate):
    with pytest.raises(KernelError, match="coordinate"):
        row_major((4, 8))(*coordinate)


@given(SWIZZLES)
def test_a_swizzle_exchanges_blocks_within_its_size(swizzle):
    found = [swizzle(i) for i in range(2 * swizzle.size)]
    assert sorted(found) == list(range(2 * swizzle.size))
    assert [found[i] for i in found] == list(range(2 * swizzle.size)), "it is its own inverse"
    assert found[swizzle.size :] == [i + swizzle.size for i in found[: swizzle.size]]
    block = 1 << swizzle.base
    assert all(found[i] - i % block == found[i - i % block] for i in range(len(found)))


def test_the_128_byte_swizzle_is_the_one_of_the_hardware():
    """Row r of 128 bytes has its 16-byte chunk c at c ^ (r % 8)."""
    swizzle = Swizzle(3, 4, 3)
    assert all(
        swizzle(128 * r + 16 * c) == 128 * r + 16 * (c ^ r % 8) for r in range(16) for c in range(8)
    )


@given(st.sampled_from((1, 2, 4, 8, 16)), st.integers(0, 4095))
def test_a_swizzle_of_elements_moves_their_bytes(element, index):
    of_bytes = Swizzle(3, 4, 3)
    assert of_bytes.of_elements(element)(index) * element == of_bytes(index * element)


def test_a_swizzle_never_takes_an_element_apart():
    with pytest.raises(KernelError, match="apart"):
        Swizzle(3, 4, 3).of_elements(32)
    with pytest.raises(KernelError, match="apart"):
        Swizzle(3, 4, 3).of_elements(3)


@pytest.mark.parametrize("bits", [(3, 4, 2), (-1, 4, 3), (1, -1, 3)])
def test_a_swizzle_of_overlapping_bits_is_refused(bits):
    with pytest.raises(KernelError, match="no swizzle"):
        Swizzle(*bits)


@given(layouts(), SWIZZLES, st.integers(0, 64))
def test_a_composed_layout_is_the_layout_then_the_swizzle(layout, swizzle, offset):
    composed = ComposedLayout(swizzle, offset, layout)
    wanted = [swizzle(offset + i) for i in layout.indices()]
    assert [composed(i) for i in range(composed.size)] == wanted == composed.indices()
    assert composed[0](0) == swizzle(offset) and len(composed) == len(layout)
    with pytest.raises(KernelError, match="offset"):
        ComposedLayout(swizzle, -1, layout)
