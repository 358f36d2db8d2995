"""Layouts as index arithmetic: what the summands add up to is what the layouts say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.backend import BackendError
from backends.gpu.layout.layout import Layout
from backends.gpu.layout.swizzle import Swizzle
from backends.gpu.layout.text import parse_layout
from backends.gpu.source.layouts import (
    matrices,
    overshoots,
    register_modes,
    registers,
    row_length,
    stage_size,
    strides,
    thread_modes,
    vector,
)
from backends.gpu.threads.thread import Axis, Fragment, Shared, SharedLoad
from backends.gpu.tile import Name
from ir.spec import Number

FLAT = st.lists(
    st.tuples(st.sampled_from((1, 2, 4)), st.sampled_from((0, 1, 2, 4, 8, 64))),
    min_size=1,
    max_size=5,
)


def axis(thread="128:0", register="1:0", span=1, width=64, index="k"):
    return Axis(index, parse_layout(thread), parse_layout(register), span, Number(width))


def summed(modes, number):
    """What a C text makes of summands."""
    return sum(
        (number // m.divisor % m.extent if m.extent else number // m.divisor) * m.stride
        for m in modes
    )


@given(FLAT)
def test_positions_of_threads_are_those_of_the_layout(flat):
    layout = Layout(tuple(e for e, _ in flat), tuple(s for _, s in flat))
    modes = thread_modes(Axis("k", layout, Layout(1, 0), 1, Number(64)))
    assert [summed(modes, t) for t in range(layout.size)] == layout.indices()


@given(FLAT, st.sampled_from((1, 8, 16, 128)), st.sampled_from((16, 64, 256)))
def test_positions_of_registers_repeat_after_a_span(flat, span, width):
    layout = Layout(tuple(e for e, _ in flat), tuple(s for _, s in flat))
    one = Axis("k", Layout(128, 0), layout, span, Number(width))
    modes = register_modes(one)
    for r in range(registers(one)):
        assert summed(modes, r) == layout(r % layout.size) + r // layout.size * span


def test_the_upper_part_of_a_thread_leaves_its_warp_out():
    one = axis("(4,8,2,2):(0,1,16,0)")
    assert [summed(thread_modes(one, 32), t) for t in (0, 31, 32, 64, 96)] == [0, 0, 16, 0, 16]


def tile(**given):
    plain = dict(axes=("m", "k"), extents=(Number(64), Number(64)), region="a")
    return Shared(Name("shared", "a"), "bf16", **{**plain, **given})


def test_the_distances_of_elements_in_a_tile():
    assert strides(tile()) == ((64,), ()) and stage_size(tile()) == (4096,)
    assert strides(tile(padding=8)) == ((72,), ()) and stage_size(tile(padding=8)) == (4608,)
    panels = tile(panel=32)
    assert strides(panels) == ((), ()) and stage_size(panels) == (4096,)
    three = tile(axes=("m", "h", "k"), extents=tuple(map(Number, (8, 4, 16))), row=2, padding=8)
    assert strides(three) == ((72,), (16,), ()) and row_length(three) == 72
    width = Name("width", "k")
    symbolic = tile(extents=(Number(64), width))
    assert strides(symbolic) == ((width,), ()) and stage_size(symbolic) == (64, width)


@pytest.mark.parametrize(
    ("register", "span", "given", "count"),
    [
        ("8:1", 64, {}, 8),
        ("4:1", 64, {}, 4),
        ("8:1", 64, dict(padding=4), 4),
        ("8:1", 64, dict(padding=1), 1),
        ("8:1", 64, dict(swizzle=Swizzle(3, 3, 3), panel=64), 8),
        ("8:1", 64, dict(swizzle=Swizzle(3, 1, 3)), 2),
        ("(2,2):(1,8)", 64, {}, 2),
        ("2:8", 64, {}, 1),
        ("1:0", 1, {}, 1),
    ],
)
def test_runs_of_registers_move_at_once_where_they_are_aligned(register, span, given, count):
    axes = (axis("128:0", index="m"), axis("(8,16):(8,0)", register, span))
    assert vector(axes, tile(**given)) == count


def operand(rows, columns):
    return Fragment(Name("value", "a"), "bf16", (rows, columns))


ROWS = axis("(4,8,4):(0,1,16)", "2:8", 64, 64, "m")
PAIRS = axis("(4,8,4):(2,0,0)", "(2,2):(1,8)", 16, 16, "k")


def load(by="matrix"):
    return SharedLoad(Name("value", "a"), Name("shared", "a"), by=by)


def test_a_fragment_is_loaded_by_four_matrices():
    found = matrices(load(), operand(ROWS, PAIRS), tile())
    assert (found.along, found.across) == (1, 0)
    assert (found.pairs, found.pair_step, found.lines, found.line_step) == (2, 8, 2, 8)


@pytest.mark.parametrize(
    ("fragment", "by", "words"),
    [
        (operand(axis(index="m"), PAIRS), "matrix", "does not lie as matrices do"),
        (operand(ROWS, PAIRS), "transposed", "rows of `a` are not contiguous"),
        (operand(ROWS, axis("(4,8,4):(2,0,0)", "(2,2):(8,1)", 16)), "matrix", "does not lie"),
    ],
)
def test_other_fragments_are_not(fragment, by, words):
    with pytest.raises(BackendError, match=words):
        matrices(load(by), fragment, tile())


def test_an_axis_may_end_before_its_registers_do():
    assert overshoots(axis(span=48, width=64)) and not overshoots(axis(span=32, width=64))
