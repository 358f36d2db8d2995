"""Distributions give each position of a span to one thread and register, whatever bits they use."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.gpu.threads.distribution import (
    Spread,
    binary,
    bits_of,
    ordered,
    replicated,
    split,
    spread,
)
from ir.spec import Number

BITS = 7  # of the threads of a block of 128


def owned(axis, threads=1 << BITS):
    """The positions of one repetition, each with the threads and registers that hold it."""
    found = {}
    for t in range(threads):
        for r in range(axis.register.size):
            found.setdefault(axis.thread(t) + axis.register(r), []).append((t, r))
    return found


@given(st.sets(st.integers(0, BITS - 1)), st.sampled_from([1, 2, 4, 8]))
def test_an_axis_covers_its_span_and_bits_that_it_lacks_make_copies(bits, vector):
    one = spread(sorted(bits), vector)
    axis = one.axis("k", Number(one.span), 1 << BITS)
    found = owned(axis)
    assert sorted(found) == list(range(axis.span)) and axis.span == vector << len(bits)
    copies = 1 << BITS - len(bits)
    assert {len(owners) for owners in found.values()} == {copies}
    assert bits_of(axis) == bits


def test_neighbouring_threads_hold_neighbouring_runs():
    axis = spread([0, 1, 2], 4).axis("k", Number(64), 32)
    assert (str(axis.thread), str(axis.register)) == ("(8,4):(4,0)", "4:1")
    assert ordered(axis) and axis.span == 32


def test_registers_that_skip_positions_between_them_are_out_of_order():
    axis = Spread(((0, 1), (1, 2)), ((2, 8),)).axis("m", Number(16), 32)
    assert not ordered(axis)


def test_an_axis_of_one_owner_is_held_by_every_thread():
    axis = replicated().axis("b", Number(3), 32)
    assert (
        axis.span == 1 and not bits_of(axis) and owned(axis, 32) == {0: [(t, 0) for t in range(32)]}
    )


@given(st.permutations(range(5)), st.integers(0, 2))
def test_an_axis_that_is_two_in_one_splits_by_stride(order, inner_bits):
    whole = Spread(tuple((bit, 1 << place) for place, bit in enumerate(order)), ((2, 32), (2, 64)))
    inner = 4 << inner_bits
    parts = split(whole, {"i": 128 // inner, "j": inner})
    i, j = (parts[n].axis(n, Number(1), 32) for n in "ij")
    axis = whole.axis("ij", Number(128), 32)
    joint = {}
    for t in range(32):
        for r_i in range(i.register.size):
            for r_j in range(j.register.size):
                at = (i.thread(t) + i.register(r_i)) * inner + j.thread(t) + j.register(r_j)
                joint.setdefault(at, []).append(t)
    assert joint == {at: [t for t, _ in owners] for at, owners in owned(axis, 32).items()}


@pytest.mark.parametrize(
    ("modes", "found"),
    [(((8, 1),), ((2, 1), (2, 2), (2, 4))), (((6, 4),), ((2, 4), (3, 8))), (((1, 5),), ())],
)
def test_modes_as_bits(modes, found):
    assert binary(modes) == found
