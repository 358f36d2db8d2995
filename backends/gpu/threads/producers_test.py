"""Producers: which loops and loads they fill, how the roles meet, and what the engine is told."""

import pytest

from backends.backend import BackendError
from backends.gpu.threads.producers import PRODUCERS
from backends.gpu.threads.testing.lowered_samples import WARPGROUPS, matmul, of, threads
from backends.gpu.threads.thread import (
    Arrive,
    Await,
    BoxCopy,
    BoxStore,
    Copy,
    Guard,
    Loop,
    SharedLoad,
    WarpgroupMultiply,
    statements,
)
from backends.gpu.tile import Name
from ir.spec import Number

LOOP = ("place(k.outer, level=loop)", "pipeline(x, stages=3)", "pipeline(w, stages=3)")
BULK = ("copy(x, by=bulk)", "copy(w, by=bulk)")
TILES = dict(m=64, n=128, k=64)


def produced(*more, table=WARPGROUPS, **extents):
    return matmul(*LOOP, *BULK, "threads(y, count=128)", *more, table=table, **(extents or TILES))


def of_producer(kind, launch):
    p = launch.producer
    return [s for s in statements((*p.once, *p.body)) if isinstance(s, kind)]


def test_a_loop_of_boxes_is_filled_by_others():
    launch = produced()
    assert launch.threads == 128 and launch.producer.threads == PRODUCERS
    assert not of(Copy, launch) and len(of_producer(BoxCopy, launch)) == 2
    assert {t.name.stem: t.stages for t in launch.shared if t.stages > 1} == {"x": 3, "w": 3}
    full, empty = launch.signals
    assert (full.stages, empty.stages, empty.arrivals) == (3, 3, Number(4))


def test_a_stage_is_given_back_when_the_matmul_that_read_it_is_over():
    launch = produced()
    (multiply,) = of(WarpgroupMultiply, launch)
    loop = next(s for s in launch.body if isinstance(s, Loop))
    assert multiply.pending == 1 and loop.certain
    assert isinstance(loop.body[0], Await) and isinstance(loop.body[2], Guard)
    (inside, after) = of(Arrive, launch)
    assert inside == after and inside.warps


def test_a_matmul_of_warps_gives_its_own_stage_back():
    launch = produced(table=WARPGROUPS[:3])
    loop = next(s for s in launch.body if isinstance(s, Loop))
    assert of(SharedLoad, launch) and any(isinstance(s, Arrive) for s in loop.body)


def test_the_engine_is_told_of_panels():
    launch = produced()
    x, w = launch.maps
    assert [(m.tensor, m.dtype, m.swizzle) for m in launch.maps] == [
        ("x", "bf16", 128),
        ("w", "bf16", 128),
    ]
    assert x.box == (Number(64), Number(64)) and w.box == (Number(64), Number(64))
    tiles = {t.name.stem: t for t in launch.shared}
    assert tiles["w"].panel == 64 and tiles["w"].padding == 0


def test_where_the_engine_does_not_take_a_tensor_producers_copy():
    launch = produced()
    constants = dict(launch.constants)
    assert Name("bulk") in constants and len(of_producer(Copy, launch)) == 2
    guard = next(s for s in of_producer(Guard, launch) if s.condition == Name("bulk"))
    assert guard.body and guard.others


def test_a_load_outside_of_loops_is_a_ring_of_one_stage():
    launch = threads(
        "y[m, n] = x[m, n] * 2.0",
        inputs="x: f32[M, N]",
        result="f32[M, N]",
        decided=(
            *("tile(m, size=32)", "tile(n, size=64)"),
            *("place(m.outer, level=grid)", "place(n.outer, level=grid)"),
            *("copy(x, by=bulk)", "threads(y, count=128)"),
        ),
        sizes={"M": 256, "N": 256},
    )
    assert [s.stages for s in launch.signals] == [1, 1]
    assert isinstance(launch.producer.body[-3], Await)
    assert len(of(SharedLoad, launch)) == 1 and len(of(Arrive, launch)) == 1


def test_a_store_of_a_box_goes_through_shared_memory():
    launch = produced("copy(y, by=bulk)")
    (stored,) = of(BoxStore, launch)
    tile = next(t for t in launch.shared if t.name == stored.tile)
    assert tile.panel == 64 and tile.swizzle is not None


def test_registers_move_where_there_are_many_threads():
    assert produced().producer.registers is None
    many = matmul(*LOOP, *BULK, "threads(y, count=256)", table=WARPGROUPS, m=128, n=128, k=64)
    assert many.producer.registers is not None


@pytest.mark.parametrize(("count", "limit"), [(64, 112), (256, 80)])
def test_registers_stay_where_a_warpgroup_is_shared_or_producers_have_few(count, limit):
    limited = (f"threads(y, count={count})", f"registers(y, limit={limit})")
    launch = matmul(*LOOP, *BULK, *limited, table=WARPGROUPS, m=128, n=64, k=64)
    assert launch.producer.registers is None


@pytest.mark.parametrize(
    ("count", "registers", "moved"), [(128, 24, (24, 240)), (128, 64, (64, 224)), (32, 0, None)]
)
def test_producers_have_threads_and_registers_as_decided(count, registers, moved):
    more = f", registers={registers}" if registers else ""
    decided = ("threads(y, count=256)", f"roles(y, producers={count}{more})")
    launch = matmul(*LOOP, *BULK, *decided, table=WARPGROUPS, m=128, n=128, k=64)
    assert launch.producer.threads == count
    found = launch.producer.registers
    assert (found and tuple(e.args[1].value for e in found)) == moved


def test_roles_that_nothing_fills_are_refused():
    with pytest.raises(BackendError, match="there are no producers|not copied in bulk"):
        matmul("copy(x, by=bulk)", "roles(y, producers=32)", table=WARPGROUPS, **TILES)
    few = ("threads(y, count=128)", "roles(y, producers=128, registers=24)")
    with pytest.raises(BackendError, match="producers give no registers away"):
        matmul(*LOOP, *BULK, *few, table=WARPGROUPS, **TILES)


def test_a_box_that_nothing_moves_is_refused():
    with pytest.raises(BackendError, match="`x` is not copied in bulk"):
        matmul(*LOOP, "copy(x, by=bulk)", "threads(y, count=128)", table=WARPGROUPS, **TILES)


def test_loops_around_a_pipelined_one_are_the_producers_too():
    launch = threads(
        "u[m, k] = sum(f32(x[m, d]) * f32(w[d, k]), d)",
        "y[m] = sum(relu(u[m, k]), k)",
        inputs="x: bf16[M, D], w: bf16[D, K]",
        result="f32[M]",
        decided=(
            *("tile(m, size=64)", "tile(k, size=64)", "tile(d, size=64)"),
            *(
                "place(m.outer, level=grid)",
                "place(k.outer, level=loop)",
                "compute(u, unit=matrix)",
            ),
            *("pipeline(x, stages=2)", "pipeline(w, stages=2)", "threads(y, count=128)"),
            *BULK,
        ),
        sizes={"M": 256, "D": 256, "K": 256},
        table=WARPGROUPS,
    )
    outer = next(s for s in launch.producer.body if isinstance(s, Loop))
    (inner,) = (s for s in outer.body if isinstance(s, Loop))
    assert (outer.name.stem, inner.name.stem) == ("k", "d") and isinstance(inner.body[0], Await)
