"""Owners of elements: distributions cover their tiles once, and those that do not are refused."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.gpu.layout.layout import Layout
from backends.gpu.threads.distribution import Spread
from backends.gpu.threads.interpreter.faults import FRAGMENT, LAYOUT, ThreadFault
from backends.gpu.threads.interpreter.registers import held, require_owners, require_same
from backends.gpu.threads.thread import Axis
from ir.spec import Number, Size

THREADS = 32


@st.composite
def axes(draw):
    """Axes over disjoint bits of a thread's number, whose positions are each held once."""
    bits = list(range(5))
    found = []
    for index in "mn":
        count = draw(st.integers(0, len(bits)))
        own, bits = bits[:count], bits[count:]
        modes = [
            *(("bit", b) for b in own),
            *(("register", 2) for _ in range(draw(st.integers(0, 3)))),
        ]
        threads, registers, below = [], [], 1
        for kind, number in draw(st.permutations(modes)):
            (threads if kind == "bit" else registers).append((number, below))
            below *= 2
        width = Number(below * draw(st.integers(1, 2)))
        found.append(Spread(tuple(threads), tuple(registers)).axis(index, width, THREADS))
    return tuple(found)


@given(axes())
def test_a_distribution_of_disjoint_bits_covers_its_tile_once(made):
    resolved = [held(a, {}, {}, THREADS) for a in made]
    require_owners("x", resolved, THREADS, "f_0")
    for axis, one in zip(made, resolved):
        t, r = THREADS - 1, one.count - 1
        registers = axis.register.size
        at = axis.thread(t) + axis.register(r % registers) + r // registers * axis.span
        assert one.positions[t, r] == at
    held_by = {}
    for t, r in product(range(THREADS), np.ndindex(*(one.count for one in resolved))):
        element = tuple(int(one.positions[t, n]) for one, n in zip(resolved, r))
        held_by.setdefault(element, set()).add(r)
    assert all(len(registers) == 1 for registers in held_by.values())
    assert len(held_by) == np.prod([one.width for one in resolved])


def refused(axis):
    with pytest.raises(ThreadFault) as found:
        require_owners("x", [held(axis, {"N": 64}, {}, THREADS)], THREADS, "f_0")
    assert found.value.kind == LAYOUT and found.value.launch == "f_0"
    return found.value.what


def test_what_is_wrong_with_a_layout_is_said():
    one = Layout(1, 0)
    assert "position 2 has several owners" in refused(
        Axis("n", Layout((4, 8), (1, 2)), one, 32, Size("N"))
    )
    assert "the element at n=1 has no owner" in refused(
        Axis("n", Layout(32, 2), one, 64, Size("N"))
    )
    assert "is not for 32 threads" in refused(Axis("n", Layout(16, 1), one, 16, Size("N")))
    assert "position 0 has several owners" in refused(
        Axis("n", Layout(32, 1), Layout(2, 0), 32, Size("N"))
    )


def test_axes_that_meet_are_distributed_alike():
    def along(register, span, width):
        return held(Axis("n", Layout(32, 2), register, span, Number(width)), {}, {}, THREADS)

    by_modes = along(Layout((2, 2), (1, 64)), 128, 128)
    merged, other = (along(Layout(2, 1), 64, width) for width in (128, 64))
    require_same("x", by_modes, merged)  # equal functions, though not equal layouts
    with pytest.raises(ThreadFault) as found:
        require_same("x", merged, other)
    assert found.value.kind == FRAGMENT
