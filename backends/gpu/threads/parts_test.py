"""Parts of a tile along an axis: successive registers of all threads, or a refusal."""

from dataclasses import replace

import pytest

from backends.backend import BackendError
from backends.gpu.layout.text import parse_layout
from backends.gpu.threads import thread as to
from backends.gpu.threads.parts import part_of
from ir.spec import Number, Size


def axis(thread, register, span, width=64):
    return to.Axis("n", parse_layout(thread), parse_layout(register), span, Number(width))


@pytest.mark.parametrize(
    "given, count, registers",
    [
        (axis("(4,8):(2,0)", "2:1", 8), 32, 8),  # repetitions
        (axis("(4,8):(2,0)", "(2,8):(1,8)", 64), 32, 8),  # registers of one
        (axis("(4,8):(2,0)", "(2,8):(1,8)", 64), 16, 4),
        (axis("(4,4,2):(2,0,0)", "(2,2,4):(1,8,16)", 64), 16, 4),
    ],
)
def test_a_part_has_the_first_registers_of_all_threads(given, count, registers):
    part, own = part_of(given, count)
    assert own == registers
    places = [
        given.register(r % given.register.size) + r // given.register.size * given.span
        for r in range(64 * own // count)
    ]
    inside = [
        part.register(r % part.register.size) + r // part.register.size * part.span
        for r in range(own)
    ]
    for n in range(64 // count):
        assert places[n * own : (n + 1) * own] == [n * count + place for place in inside]
    beyond = max(given.thread(t) for t in range(32))
    assert beyond + max(inside) < count


@pytest.mark.parametrize(
    "given, count",
    [
        (axis("(4,4,2):(2,0,32)", "(2,4):(1,8)", 64), 32),  # warps share the columns
        (axis("(4,8):(16,0)", "16:1", 64), 32),  # threads do
        (axis("(4,8):(2,0)", "2:1", 8), 64),
        (axis("(4,8):(2,0)", "2:1", 8), 24),
        (replace(axis("(4,8):(2,0)", "2:1", 8), width=Size("N")), 32),
    ],
)
def test_other_columns_are_refused(given, count):
    with pytest.raises(BackendError, match="columns"):
        part_of(given, count)
