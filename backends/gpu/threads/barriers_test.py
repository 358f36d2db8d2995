"""Barriers stand where one thread meets what another left in shared memory, and nowhere else."""

from backends.gpu.threads.barriers import Barriers
from backends.gpu.threads.thread import (
    Barrier,
    Copy,
    Each,
    Guard,
    Loop,
    Shared,
    SharedLoad,
    SharedStore,
    Thread,
)
from backends.gpu.tile import Check, Name, Place
from ir.spec import Number

F, G = Name("value", "f"), Name("value", "g")
A, B = Name("shared", "a"), Name("shared", "b")
RING = Name("shared", "ring")
PLACE = Place(Name("pointer", "x"), ())


def with_barriers(*statements, b_region="b"):
    shared = {
        A: Shared(A, "f32", ("k",), (Number(8),), "a"),
        B: Shared(B, "f32", ("k",), (Number(8),), b_region),
        RING: Shared(RING, "f32", ("k",), (Number(8),), "ring", stages=2),
    }
    return Barriers(shared).block(statements)


def store(tile):
    return SharedStore(tile, F)


def load(tile):
    return SharedLoad(G, tile)


def test_a_read_waits_for_the_writers():
    assert with_barriers(store(A), load(A)) == (store(A), Barrier(), load(A))


def test_a_write_waits_for_the_readers():
    found = with_barriers(store(A), load(A), store(A))
    assert found == (store(A), Barrier(), load(A), Barrier(), store(A))


def test_tiles_of_unlike_regions_do_not_wait():
    assert Barrier() not in with_barriers(store(A), load(B), store(B))[:2]
    assert with_barriers(store(A), store(B), load(A), load(B)) == (
        store(A),
        store(B),
        Barrier(),
        load(A),
        load(B),
    )


def test_tiles_that_overlap_do():
    assert with_barriers(load(A), store(B), b_region="a") == (load(A), Barrier(), store(B))


def test_two_reads_need_nothing():
    assert with_barriers(load(A), load(A)) == (load(A), load(A))


def test_a_copy_past_the_registers_is_a_write():
    copy = Copy(A, PLACE, ())
    assert with_barriers(copy, load(A)) == (copy, Barrier(), load(A))


def loop(*body):
    return Loop(Name("origin", "k"), Number(0), Number(8), 1, body)


def test_an_iteration_waits_for_the_one_before():
    found = with_barriers(loop(store(A), load(A)))
    assert found == (loop(Barrier(), store(A), Barrier(), load(A)),)


def test_what_is_pending_before_a_loop_is_settled_before_it_once():
    assert with_barriers(store(A), loop(load(A))) == (store(A), Barrier(), loop(load(A)))


def test_what_a_loop_leaves_pending_is_settled_behind_it():
    found = with_barriers(loop(load(A)), store(A))
    assert found == (loop(load(A)), Barrier(), store(A))


def test_both_sides_of_a_guard_count():
    guard = Guard(Number(1), (store(A),), (Each(F, Number(0)),))
    assert with_barriers(guard, load(A)) == (guard, Barrier(), load(A))


def test_stages_of_a_pipeline_have_barriers_of_their_own():
    copy = Copy(RING, PLACE, (), stage=Number(1))
    assert with_barriers(loop(load(RING), copy)) == (loop(load(RING), copy),)


def test_a_tile_that_overlaps_a_pipeline_waits_for_its_end():
    copy = Copy(RING, PLACE, (), stage=Number(1))
    found = with_barriers(loop(load(RING), copy), store(B), b_region="ring")
    assert found == (loop(load(RING), copy), Barrier(), store(B))


def test_a_barrier_stands_before_a_guard_that_threads_differ_in():
    guard = Guard(Check(Thread(), below=Number(8)), (store(A),))
    assert with_barriers(load(A), guard, load(A)) == (
        *(load(A), Barrier(), guard),
        *(Barrier(), load(A)),
    )
