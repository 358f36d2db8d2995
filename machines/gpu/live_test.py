"""What is live at once: tiles, addresses, and what only passes through registers."""

from dataclasses import replace

import pytest

from ir.nest.footprint import register_bytes
from ir.sizes import bind
from ir.spec import DTYPES
from machines.gpu.live import (
    ADDRESSES,
    ALONE,
    DEEPEST,
    SHARED,
    STAGED,
    live_bytes,
    too_deep,
    warp_bytes,
)
from machines.gpu.shared_memory import LEAST_SIDE
from testing.samples.samples import WITH_THREADS, lowered, spec_of

REGISTERS = replace(
    WITH_THREADS,
    units={
        **WITH_THREADS.units,
        "matrix": replace(WITH_THREADS.units["matrix"], reads="register"),
    },
)
SIZES = {"M": 256, "N": 256, "K": 256}
PRODUCT = (
    "tile(m, size=64)",
    "tile(n, size=64)",
    "place(m.outer, level=grid)",
    "place(n.outer, level=grid)",
    "compute(acc, unit=matrix)",
)
LOOP = ("tile(k, size=32)", "place(k.outer, level=loop)")
ROW = ("tile(m, size=1)", "place(m.outer, level=grid)")


def live(kernel, *lines, sizes=None, machine=WITH_THREADS) -> float:
    nest = lowered(kernel, *lines, sizes=sizes or SIZES, machine=machine)
    bound = bind(nest.spec, sizes or SIZES)
    return max(live_bytes(launch, machine, bound) for launch in nest.launches)


def test_what_is_made_element_by_element_takes_the_place_of_what_it_is_made_from():
    spec = spec_of("e[m, k] = exp(x[m, k])", "y[m, k] = e[m, k] * 2.0")
    row = 4 * 256
    assert live(spec, *ROW, sizes={"M": 4, "K": 256}) == row * (1 + ADDRESSES)


def test_what_is_read_again_stays():
    spec = spec_of("e[m, k] = exp(x[m, k])", "y[m, k] = e[m, k] * x[m, k]")
    assert live(spec, *ROW, sizes={"M": 4, "K": 256}) == 2 * 4 * 256


def test_sums_are_held_through_a_loop_with_what_passes():
    sums, loaded = 4 * 64 * 64, 2 * 32 * 64
    plain, staged = (
        PRODUCT + LOOP,
        (*PRODUCT, *LOOP, "pipeline(x, stages=3)", "pipeline(w, stages=3)"),
    )
    assert live("matmul_bias_gelu", *plain) == sums + loaded * (1 + ADDRESSES)
    assert live("matmul_bias_gelu", *staged) == pytest.approx(sums + loaded * ADDRESSES, rel=0.1)


def test_operands_that_are_not_loaded_ahead_come_through_registers():
    loop = live("matmul_bias_gelu", *PRODUCT, *LOOP)
    assert live("matmul_bias_gelu", *PRODUCT) > 2 * loop


def test_operands_that_are_not_read_from_shared_memory_are_held_too():
    loaded = 2 * 32 * (64 + 64)
    less = live("matmul_bias_gelu", *PRODUCT, *LOOP) - 2 * 32 * 64 * (1 + ADDRESSES)
    assert live("matmul_bias_gelu", *PRODUCT, *LOOP, machine=REGISTERS) == less + SHARED * loaded


def test_elements_that_are_loaded_by_themselves_cost_more_than_runs():
    sizes = {"B": 1, "C": 64, "O": 64, "L": 64}
    lines = (
        "tile(b, size=1)",
        "tile(i, size=1)",
        "place(i.outer, level=loop)",
        "compute(acc, unit=matrix)",
    )
    assert live("conv1d", *lines, sizes=sizes) >= 2 * ALONE * 64 * 64


def test_elements_that_are_copied_to_shared_memory_by_themselves_hold_addresses():
    spec = spec_of(
        "acc[m, n] = sum(x[m, k, 0] * w[k, n], k)",
        "y[m, n] = acc[m, n] + 1.0",
        inputs="x: f32[M, K, 3], w: f32[K, N]",
        result="f32[M, N]",
    )
    staged = (*PRODUCT, *LOOP, "pipeline(x, stages=3)", "pipeline(w, stages=3)")
    assert live(spec, *staged) >= STAGED * 64 * 32


@pytest.mark.parametrize(
    ("dtype", "tile", "found"),
    [
        ("f32", DEEPEST, 0.0),
        ("f32", 2 * DEEPEST, 1.0),
        ("f16", 2 * DEEPEST, 0.0),
    ],
)
def test_products_that_threads_compute_can_be_too_deep(dtype, tile, found):
    spec = spec_of(
        "acc[m, n] = sum(x[m, k] * w[k, n], k)",
        "y[m, n] = acc[m, n] + 1.0",
        inputs=f"x: {dtype}[M, K], w: {dtype}[K, N]",
        result="f32[M, N]",
    )
    lines = (*PRODUCT, f"tile(k, size={tile})", "place(k.outer, level=loop)")
    (launch,) = lowered(spec, *lines, sizes=SIZES, machine=WITH_THREADS).launches
    assert too_deep(launch, WITH_THREADS, SIZES) == found


@pytest.mark.parametrize("depth", [32, 128])
def test_each_warp_holds_all_of_k_of_operands_that_are_computed(depth):
    spec = spec_of(
        "e[m, k] = bf16(exp(f32(x[m, k])))",
        "acc[m, n] = sum(f32(e[m, k]) * f32(w[k, n]), k)",
        "y[m, n] = acc[m, n] + 1.0",
        inputs="x: bf16[M, K], w: bf16[K, N]",
        result="f32[M, N]",
    )
    sizes = {**SIZES, "K": depth}
    (launch,) = lowered(spec, *PRODUCT, sizes=sizes, machine=WITH_THREADS).launches
    assert warp_bytes(launch, WITH_THREADS, sizes) == 2 * LEAST_SIDE * depth * DTYPES["f32"]
    nest = lowered("matmul_bias_gelu", *PRODUCT, *LOOP, sizes=SIZES, machine=WITH_THREADS)
    assert warp_bytes(nest.launches[0], WITH_THREADS, SIZES) == 0


@pytest.mark.parametrize("kernel", ["softmax", "cumsum"])
def test_rows_take_little_more_than_they_surely_do(kernel):
    sizes = {"M": 16, "K": 1024}
    nest = lowered(kernel, *ROW, sizes=sizes, machine=REGISTERS)
    (launch,) = nest.launches
    surely = register_bytes(launch, WITH_THREADS, bind(nest.spec, sizes))
    assert surely <= live(kernel, *ROW, sizes=sizes) <= 2.5 * surely
