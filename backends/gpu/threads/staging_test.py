"""Staging: what is copied ahead, into how many stages, and what is stored through shared memory."""

import pytest

from backends.gpu.threads.testing.lowered_samples import (
    GRID,
    WARPGROUPS,
    WARPS,
    matmul,
    of,
    threads,
    tiles,
)
from backends.gpu.threads.thread import (
    Commit,
    Copy,
    Guard,
    Load,
    Loop,
    SharedLoad,
    SharedStore,
    Store,
    Thread,
    Wait,
    WarpgroupMultiply,
    WarpgroupWait,
    statements,
)
from ir.spec import Number

LOOP = "place(k.outer, level=loop)"
AHEAD = ("pipeline(x, stages=3)", "pipeline(w, stages=3)", "threads(y, count=128)")
SMALL = dict(m=64, n=64, k=32)


def rings(launch):
    return {t.name.stem: t.stages for t in launch.shared if t.stages > 1}


def test_a_loop_without_stages_waits_for_its_own_copies():
    launch = matmul(LOOP, "threads(y, count=128)", **SMALL)
    assert not rings(launch) and {w.pending for w in of(Wait, launch)} == {0}
    assert len(of(Copy, launch)) == 2 and not any(c.stage for c in of(Copy, launch))


def test_stages_run_ahead_by_one_less():
    launch = matmul(LOOP, *AHEAD, **SMALL)
    first, loop = (s for s in launch.body if isinstance(s, Loop))
    assert rings(launch) == {"x": 3, "w": 3}
    assert first.high == Number(2) and loop.body[0] == Wait(1)
    assert len(of(Copy, launch)) == 4 and isinstance(loop.body[2], Guard)
    assert Commit() in loop.body  # also where nothing is left to copy, so that groups are counted


def test_a_matmul_in_flight_has_a_buffer_more():
    launch = matmul(LOOP, *AHEAD, table=WARPGROUPS, **SMALL)
    assert rings(launch) == {"x": 4, "w": 4}
    (multiply,) = of(WarpgroupMultiply, launch)
    assert multiply.pending == 1 and len(of(WarpgroupWait, launch)) == 1


def test_large_loads_into_registers_are_copied_ahead_too():
    decided = (*tiles(m=64, k=64), "place(m.outer, level=grid)", "place(k.outer, level=loop)")
    more = ("pipeline(x, stages=3)", "threads(y, count=128)")
    launch = threads(
        "y[m] = sum(x[m, k] * 2.0, k)",
        decided=(*decided, *more),
        sizes={"M": 256, "K": 256},
        result="f32[M]",
    )
    assert rings(launch) == {"x": 3} and not of(Load, launch)
    assert of(SharedLoad, launch)[0].stage is not None


RMS = (
    "ss[m] = sum(f32(x[m, k]) ** 2, k)",
    "acc[m, n] = sum(f32(x[m, k]) * f32(g[k]) * f32(w[k, n]), k)",
    "y[m, n] = acc[m, n] * ss[m]",
)


def scaled(dtype="bf16", table=WARPS):
    """A matmul whose operand A is scaled along K."""
    decided = (*tiles(m=64, n=64, k=64), *GRID, LOOP, "fuse(ss, into=acc)", *AHEAD)
    decided += ("compute(acc, unit=matrix)", "precision(acc, dtype=bf16)")
    inputs = f"x: {dtype}[M, K], g: bf16[K], w: bf16[K, N]"
    given = dict(sizes={"M": 256, "N": 256, "K": 256}, inputs=inputs, result="bf16[M, N]")
    return threads(*RMS, decided=decided, table=table, **given)


def test_small_tiles_are_copied_beside_large_ones_by_the_threads_that_they_need():
    launch = scaled()
    assert rings(launch) == {"x": 3, "g": 3, "w": 3} and not of(Load, launch)
    guards = [s for s in of(Guard, launch) if Thread() in s.condition.walk()]
    assert {s.condition.below for s in guards} == {Number(8)}  # 64 elements in runs of 8
    assert {s.body[0].tile.stem for s in guards} == {"g"}


def test_loops_of_a_persistent_block_have_stages_of_their_own():
    launch = matmul(LOOP, *AHEAD, "persistent(y, programs=1)", **SMALL)
    assert launch.resident and rings(launch) == {"x": 3, "w": 3}


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_rows_are_padded_by_what_the_threads_of_a_row_hold(dtype):
    launch = scaled(dtype=dtype, table=WARPGROUPS)
    (ring,) = (t for t in launch.shared if t.name.stem == "x" and t.stages > 1)
    # Four threads hold a pair each of a row: 16 bytes of 2-byte elements, 32 of 4-byte ones.
    assert ring.padding == 8 and not ring.panel


def test_short_runs_are_stored_through_the_memory_of_a_pipeline_that_has_ended():
    launch = matmul(LOOP, *AHEAD, **SMALL)
    stored = next(t for t in launch.shared if t.name.stem == "stored")
    assert stored.region in {t.region for t in launch.shared if t.stages > 1}
    (store,) = of(Store, launch)
    assert store.vector is not None and store.vector.count == 8
    assert store.axes[-1].index == "n" and of(SharedStore, launch)


@pytest.mark.parametrize("columns, run", [(256, 8), (252, 4), (250, 2), (251, 1)])
def test_what_is_stored_at_once_is_what_the_tuned_sizes_align(columns, run):
    """Threads beside each other take runs beside each other, so that a warp fills whole sectors."""
    launch = matmul(LOOP, *AHEAD, sizes={"M": 256, "N": columns, "K": 256}, **SMALL)
    (store,) = of(Store, launch)
    (_, axis) = store.axes
    assert axis.index == "n" and axis.register.flat[0][0] == run
    assert axis.thread.flat[0][1] == run  # the next thread begins after this one's run
    assert (store.vector.count if store.vector else 1) == run


def test_positions_that_a_loop_does_not_move_are_made_before_it():
    launch = matmul(LOOP, *AHEAD, **SMALL)
    loop = [s for s in launch.body if isinstance(s, Loop)][-1]
    moved = {s.name.stem for s in statements(loop.body) if type(s).__name__ == "Positions"}
    assert moved == {"k"}


@pytest.mark.parametrize("size", [16, 64])
def test_an_alignment_is_a_constant_of_the_launch_only_where_sizes_decide_it(size):
    launch = matmul(LOOP, *AHEAD, sizes={"M": 256, "N": 256, "K": 16 * size}, **SMALL)
    flags = {n for n, _ in launch.constants if n.sort == "aligned"}
    assert flags == {c.vector.aligned for c in of(Copy, launch)} | {
        s.vector.aligned for s in of(Store, launch)
    }


def test_operands_whose_batch_is_contiguous_are_not_loaded_as_matrices():
    launch = threads(
        "y[b, i, j] = sum(f32(x[i, d, b]) * f32(w[j, d, b]), d)",
        inputs="x: f16[I, D, B], w: f16[J, D, B]",
        result="f32[B, I, J]",
        decided=(
            *tiles(b=2, i=32, j=32, d=32),
            *(
                "place(b.outer, level=grid)",
                "place(i.outer, level=grid)",
                "compute(y, unit=matrix)",
            ),
        ),
        sizes={"B": 8, "I": 64, "J": 64, "D": 64},
    )
    loads = [s for s in of(SharedLoad, launch) if s.tile.stem in ("x", "w")]
    assert loads and not any(s.by for s in loads)
