"""Nested loops as one: every step of all of them, in order."""

from itertools import product
from math import ceil

import pytest

from backends.gpu.flatten import from_end, origins, steps
from backends.gpu.text import scalar_text, statement_lines
from backends.gpu.tile import Name
from ir.nest.nest import Bound, Loop
from ir.spec import Apply, Number, Size

STEP = Name("step", "j")


def loop(index, tile, size):
    return Loop(index, tile, Bound(size=Number(0)), Bound(size=size), ())


def cdiv(a, b):
    return -(-a // b)


@pytest.mark.parametrize("channels", [1, 16, 37])
@pytest.mark.parametrize("width", [Number(2), Size("J"), Apply("sub", (Size("J"), Number(1)))])
def test_each_step_is_a_step_of_each_loop(channels, width):
    loops = (loop("c", 16, Size("C")), loop("i", 1, Number(3)), loop("j", 2, width))
    names = {"cdiv": cdiv, "C": channels, "J": 5}
    wide = eval(scalar_text(width), names)
    expected = list(product(range(0, channels, 16), range(3), range(0, wide, 2)))
    count = eval(scalar_text(steps(loops)), names)
    assert count == len(expected) == ceil(channels / 16) * 3 * ceil(wide / 2)
    found = []
    for step in range(count):
        own = dict(names, j_step=step)
        for line in statement_lines(origins(loops, STEP)):
            exec(line, own)
        found.append(tuple(own[f"{i}_at"] for i in "cij"))
    assert found == expected


def test_known_steps_are_one_number():
    loops = (loop("i", 1, Number(3)), loop("j", 4, Number(9)))
    assert steps(loops) == Number(9)
    assert steps((loop("c", 16, Size("C")), *loops)).args[1] == Number(9)


@pytest.mark.parametrize("tile", [1, 4])
@pytest.mark.parametrize("low", [Number(0), Number(8), Size("L")])
@pytest.mark.parametrize("high", [Number(19), Size("H")])
@pytest.mark.parametrize("end", [9, 16, 19, 20])
def test_a_loop_from_its_end_has_the_same_tiles(tile, low, high, end):
    names = {"cdiv": cdiv, "L": 8, "H": end}
    first, last = (eval(scalar_text(e), names) for e in (low, high))
    at, span = from_end(low, high, tile, STEP)
    steps_of = range(0, eval(scalar_text(span), names), tile)
    found = [eval(scalar_text(at), names | {"j_step": step}) for step in steps_of]
    assert found == list(range(first, last, tile))[::-1]


def test_a_loop_from_its_end_without_tiles_has_no_step():
    _, span = from_end(Size("L"), Size("L"), 4, STEP)
    assert eval(scalar_text(span), {"L": 8}) == 0
