"""Owners: contiguous axes take neighbouring threads, results have the layout of their instruction."""

import pytest

from backends.gpu.threads.distribution import bits_of
from backends.gpu.threads.testing.lowered_samples import WARPGROUPS, matmul, of, threads, tiles
from backends.gpu.threads.thread import (
    Multiply,
    SharedLoad,
    SharedStore,
    Shuffle,
    Store,
    WarpgroupMultiply,
)

ROWS = ("place(m.outer, level=grid)", "threads(y, count=128)")


def axes(launch, name):
    (found,) = (f for f in launch.fragments if f.name.sort == "value" and f.name.stem == name)
    return {a.index: a for a in found.axes}


def test_neighbouring_threads_hold_neighbouring_runs_of_16_bytes():
    sizes = {"M": 64, "K": 1024}
    launch = threads("y[m, k] = x[m, k] * 2.0", decided=(*tiles(m=4), *ROWS), sizes=sizes)
    k = axes(launch, "x")["k"]
    assert str(k.register) == "4:1" and k.thread(1) == 4


def test_a_reduction_stays_in_a_warp_where_rows_can_use_the_others():
    launch = threads(
        "s[m] = sum(x[m, k], k)",
        "y[m, k] = x[m, k] - s[m]",
        decided=(*tiles(m=4), *ROWS),
        sizes={"M": 64, "K": 1024},
    )
    assert bits_of(axes(launch, "x")["k"]) == set(range(5))
    assert of(Shuffle, launch) and not of(SharedStore, launch)


def test_a_single_row_is_reduced_over_all_warps():
    launch = threads(
        "s[m] = sum(x[m, k], k)",
        "y[m, k] = x[m, k] - s[m]",
        decided=(*tiles(m=1), *ROWS),
        sizes={"M": 64, "K": 1024},
    )
    assert bits_of(axes(launch, "x")["k"]) == set(range(7))
    assert len(of(SharedStore, launch)) == len(of(SharedLoad, launch)) == 1


def test_a_tile_that_is_strided_along_an_axis_has_no_runs_along_it():
    launch = threads(
        "y[m, k] = pad(x[m, 2 * k], 0.0)",
        decided=(*tiles(m=4), *ROWS),
        sizes={"M": 64, "K": 256},
    )
    assert axes(launch, "x")["k"].register.size == 1


def test_one_of_several_copies_is_stored():
    launch = threads(
        "y[m] = sum(x[m, k], k)",
        decided=(*tiles(m=4), *ROWS),
        sizes={"M": 64, "K": 1024},
        result="f32[M]",
    )
    (store,) = of(Store, launch)
    assert store.copies == 0b11111


def test_a_computed_operand_is_held_as_the_instruction_takes_it():
    launch = threads(
        "acc[m, n] = sum(f32(x[m, k]) * f32(g[k]) * f32(w[k, n]), k)",
        "y[m, n] = acc[m, n]",
        decided=(
            *tiles(m=64, n=64, k=32),
            *("place(m.outer, level=grid)", "place(n.outer, level=grid)"),
            *("place(k.outer, level=loop)", "compute(acc, unit=matrix)", "threads(y, count=128)"),
            "precision(acc, dtype=bf16)",
        ),
        sizes={"M": 256, "N": 256, "K": 256},
        table=WARPGROUPS,
        inputs="x: bf16[M, K], g: bf16[K], w: bf16[K, N]",
        result="bf16[M, N]",
    )
    (multiply,) = of(WarpgroupMultiply, launch)
    assert multiply.a.sort != "shared" and multiply.b.sort == "shared"


def test_without_an_instruction_threads_multiply_by_themselves():
    launch = matmul("place(k.outer, level=loop)", table=(), m=64, n=64, k=32)
    (multiply,) = of(Multiply, launch)
    assert multiply.instruction is None


@pytest.mark.parametrize(("k", "stored"), [(64, False), (512, True)])
def test_a_computed_operand_stays_in_registers_where_it_takes_few(k, stored):
    lines = (
        "xn[m, k] = f32(x[m, k]) * f32(g[k])",
        "acc[m, n] = sum(xn[m, k] * f32(w[k, n]), k)",
        "y[m, n] = acc[m, n]",
    )
    decided = (*tiles(m=32, n=64), "place(m.outer, level=grid)", "place(n.outer, level=grid)")
    decided += ("compute(acc, unit=matrix)", "precision(acc, dtype=bf16)")
    launch = threads(
        *lines,
        decided=(*decided, "threads(y, count=256)"),
        sizes={"M": 64, "N": 128, "K": k},
        inputs="x: bf16[M, K], g: bf16[K], w: bf16[K, N]",
        result="f32[M, N]",
    )
    assert ("acc_a" in {s.tile.stem for s in of(SharedStore, launch)}) is stored
