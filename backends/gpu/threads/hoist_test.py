"""Hoisting: a tile that is stored alike in all iterations is stored before the loop, others are not."""

import pytest

from backends.gpu.threads.hoist import hoisted
from backends.gpu.threads.thread import (
    Copy,
    Each,
    Element,
    Guard,
    Loop,
    Shared,
    SharedLoad,
    SharedStore,
)
from backends.gpu.tile import Name, Place
from ir.spec import Number, Size

K = Name("origin", "k")
IN, SCALED, READ, OTHER = (Name("value", n) for n in ("in", "scaled", "read", "other"))
TILE = Name("shared", "a")
MAKE = Each(SCALED, Element(IN))
STORE, LOAD = SharedStore(TILE, SCALED), SharedLoad(READ, TILE)
MOVING = Each(SCALED, Element(K))


def moved(*body, overlapping=()):
    """What is stored before a loop with a body, and what is left of the body."""
    shared = {TILE: Shared(TILE, "f32", ("k",), (Number(8),), "a")}
    shared |= {t: Shared(t, "f32", ("k",), (Number(8),), "a") for t in overlapping}
    loop = Loop(K, Number(0), Size("K"), 8, body)
    *before, found = hoisted((loop,), shared)
    return tuple(before), found.body


def test_a_store_moves_with_what_it_needs_alone():
    unneeded = Each(OTHER, Element(IN))
    assert moved(MAKE, unneeded, STORE, LOAD) == ((MAKE, STORE), (unneeded, LOAD))


def test_values_alone_do_not_move():
    assert moved(MAKE) == ((), (MAKE,))


@pytest.mark.parametrize(
    "body",
    [
        (MOVING, STORE, LOAD),  # of the iteration
        (MAKE, STORE, LOAD, Each(IN, Number(1))),  # of what the loop changes
        (MAKE, STORE, LOAD, MAKE),  # of what is made twice
        (MAKE, STORE, LOAD, STORE),  # two stores
        (MAKE, STORE),  # nothing reads it
        (MAKE, Copy(TILE, Place(Name("pointer", "x"), ()), ()), STORE, LOAD),
        (Guard(Size("M"), (MAKE, STORE)), LOAD),
    ],
    ids=["moving", "changed", "twice", "two stores", "unread", "copy", "guard"],
)
def test_what_differs_between_iterations_stays(body):
    assert moved(*body) == ((), body)


def test_a_tile_that_overlaps_another_of_the_loop_stays():
    other = Name("shared", "b")
    body = (MAKE, STORE, LOAD, SharedStore(other, IN), SharedLoad(READ, other))
    assert moved(*body, overlapping=(other,)) == ((), body)


def test_a_store_leaves_several_loops():
    inner = Loop(Name("origin", "n"), Number(0), Size("N"), 8, (MAKE, STORE, LOAD))
    before, body = moved(inner)
    assert before == (MAKE, STORE) and body[0].body == (LOAD,)
