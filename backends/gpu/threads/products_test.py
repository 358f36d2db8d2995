"""Matmuls: which operands are in shared memory, in which form, and what is computed at its use."""

import pytest

from backends.gpu.threads.testing.lowered_samples import (
    GRID,
    WARPGROUPS,
    WARPS,
    of,
    threads,
    tiles,
)
from backends.gpu.threads.thread import (
    Copy,
    Each,
    Multiply,
    SharedLoad,
    SharedStore,
    WarpgroupMultiply,
    statements,
)
from ir.spec import Number

AHEAD = ("pipeline(x, stages=2)", "pipeline(w, stages=2)", "threads(y, count=128)")
DECIDED = (*GRID, "place(k.outer, level=loop)", "compute(acc, unit=matrix)")
PLAIN = "acc[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)"
SIZES = {"M": 256, "N": 256, "K": 256}


def tf32(precision="tf32", dtype="f32", table=WARPS, product=PLAIN, w="[K, N]"):
    decided = (*tiles(m=64, n=64, k=32), *DECIDED, *AHEAD, f"precision(acc, dtype={precision})")
    given = dict(inputs=f"x: f32[M, K], w: {dtype}{w}", result="f32[M, N]", table=table)
    return threads(product, "y[m, n] = acc[m, n]", decided=decided, sizes=SIZES, **given)


@pytest.mark.parametrize(("dtype", "by"), [("f16", "transposed"), ("f32", "")])
def test_operands_b_of_warps_are_rounded_where_they_are_multiplied(dtype, by):
    launch = tf32(dtype=dtype)
    assert not any(s.tile.stem == "acc_b" for s in of(SharedStore, launch))
    (load,) = (s for s in of(SharedLoad, launch) if s.tile.stem == "w")
    assert load.stage is not None and load.by == by
    (multiply,) = of(Multiply, launch)
    (rounded,) = (s for s in of(Each, launch) if s.name == multiply.b)
    assert (launch.fragment(multiply.b).dtype, launch.fragment(load.name).dtype) == ("tf32", dtype)
    assert load.name in {e.name for e in rounded.value.walk() if hasattr(e, "name")}


@pytest.mark.parametrize(("dtype", "rounded"), [("f16", False), ("bf16", False), ("f32", True)])
def test_what_tf32_holds_is_not_rounded(dtype, rounded):
    launch = tf32(dtype=dtype)
    (multiply,) = of(Multiply, launch)
    (made,) = (s for s in of(Each, launch) if s.name == multiply.b)
    assert ("round_tf32" in str(made.value)) is rounded


def test_operands_of_warpgroups_are_stored_contiguous_along_k():
    launch = tf32(dtype="f32", table=WARPGROUPS)
    (multiply,) = of(WarpgroupMultiply, launch)
    (tile,) = (t for t in launch.shared if t.name == multiply.b)
    assert (tile.axes, tile.dtype, tile.panel) == (("n", "k"), "tf32", 32)
    (store,) = (s for s in of(SharedStore, launch) if s.tile == multiply.b)
    k = next(a for a in launch.fragment(store.name).axes if a.index == "k")
    assert str(k.register) == "4:1"  # 16 bytes


ROUNDED = (
    "xr[m, k] = tf32(x[m, k])",
    "wr[n, k] = tf32(w[n, k])",
    "y[m, n] = sum(f32(xr[m, k]) * f32(wr[n, k]), k)",
)


def of_engine(*equations, w="[N, K]", **given):
    decided = (
        *tiles(m=64, n=64, k=32),
        *GRID,
        "place(k.outer, level=loop)",
        "compute(y, unit=matrix)",
    )
    decided += (*AHEAD, "copy(x, by=bulk)", "copy(w, by=bulk)")
    given = dict(inputs=f"x: f32[M, K], w: f32{w}", result="f32[M, N]", table=WARPGROUPS) | given
    return threads(*equations, decided=decided, sizes=SIZES, **given)


def test_the_engine_rounds_what_it_copies_for_a_matmul_of_tf32():
    launch = of_engine(*ROUNDED)
    (multiply,) = of(WarpgroupMultiply, launch)
    tiles = {t.name: t for t in launch.shared}
    assert [tiles[n].dtype for n in (multiply.a, multiply.b)] == ["tf32", "tf32"]
    assert [m.dtype for m in launch.maps] == ["tf32", "tf32"] and multiply.pending == 1
    assert [s.name.stem for s in of(SharedStore, launch)] == ["y"]
    assert "round_tf32" not in str(launch.body)


def test_where_the_engine_takes_no_tensor_producers_round():
    launch = of_engine(*ROUNDED)
    every = list(statements(launch.producer.body))
    stored = [s.name for s in every if isinstance(s, SharedStore)]
    rounded = {s.name: s for s in every if isinstance(s, Each) and "round_tf32" in str(s.value)}
    assert len(stored) == 2 and set(stored) == set(rounded)
    assert not any(isinstance(s, Copy) for s in every)


def test_consumers_round_what_is_not_contiguous_along_k():
    other = ROUNDED[0], "wr[k, n] = tf32(w[k, n])", ROUNDED[2].replace("wr[n, k]", "wr[k, n]")
    launch = of_engine(*other, w="[K, N]")
    assert {m.tensor: m.dtype for m in launch.maps} == {"x": "tf32", "w": "f32"}
    assert [s.name.stem for s in of(SharedStore, launch)] == ["wr", "y"]


def test_matmuls_onto_the_same_result_are_in_flight_together():
    decided = (*tiles(m=64, n=64, k=32), *GRID, "place(k.outer, level=loop)")
    prepacked = ("kernel(acc_al)", "kernel(acc_bl)", "compute(acc, unit=matrix)")
    prepacked += tuple(f"pipeline(acc_{o}, stages=2)" for o in ("ah", "al", "bh", "bl"))
    more = ("precision(acc, dtype=tf32x3)", "threads(y, count=128)")
    launch = threads(
        *("acc[m, n] = sum(x[m, k] * w[k, n], k)", "y[m, n] = acc[m, n]"),
        decided=(*decided, *prepacked, *more),
        sizes=SIZES,
        inputs="x: f32[M, K], w: f32[K, N]",
        result="f32[M, N]",
        table=WARPGROUPS,
    )
    assert [s.pending for s in of(WarpgroupMultiply, launch)] == [1, 2, 0]


def test_an_operand_is_stored_once_for_several_matmuls():
    launch = tf32("tf32x3", "f32", WARPGROUPS, "acc[m, n] = sum(x[m, k] * w[k, n], k)")
    stored = [s.tile for s in of(SharedStore, launch) if s.tile.stem != "stored"]
    assert len(stored) == len(set(stored)) == 2 and len(of(WarpgroupMultiply, launch)) == 3


@pytest.mark.parametrize(("w", "parts"), [("[K, N]", 3), ("[N, K]", 2)])
def test_what_is_read_in_pairs_has_a_swizzle_of_its_own(w, parts):
    product = PLAIN if w == "[K, N]" else PLAIN.replace("w[k, n]", "w[n, k]")
    launch = tf32(dtype="f32", product=product, w=w)
    (tile,) = (t for t in launch.shared if t.name.stem == "w")
    assert tile.panel == 32 and tile.swizzle.bits == parts
    assert tile.extents[0] == Number(32 if w == "[K, N]" else 64)
