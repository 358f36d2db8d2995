"""Footprints of launches against figures worked out by hand."""

from dataclasses import replace

import pytest

from ir.errors import KernelError
from ir.machine import Space
from ir.nest.footprint import (
    on_chip_bytes,
    register_bytes,
    require_fit,
    temporaries,
    value_bytes,
)
from testing.samples.samples import SMALL, WITH_REGISTERS, lowered, spec_of

ROW = ("tile(m, size=4)", "place(m.outer, level=grid)")  # softmax at M=64, K=128
SIZES = {"M": 64, "K": 128}
TILE = 4 * 128 * 4  # bytes of f32[m=4, k=128]
READS_SHARED = replace(
    WITH_REGISTERS,
    units={
        **WITH_REGISTERS.units,
        "matrix": replace(WITH_REGISTERS.units["matrix"], reads="shared"),
    },
)
TIGHT = replace(WITH_REGISTERS, spaces={**WITH_REGISTERS.spaces, "shared": Space(4096)})


def test_a_value_takes_all_its_slots():
    (launch,) = lowered("softmax", *ROW, "pipeline(x, stages=3)").launches
    assert value_bytes(launch.value("x"), SIZES) == 3 * TILE
    assert value_bytes(launch.value("mx"), SIZES) == 4 * 4


def test_without_registers_every_value_lies_on_chip():
    (launch,) = lowered("softmax", *ROW).launches
    assert [v.name for v in launch.values] == ["x", "mx", "e", "s", "y"]
    assert temporaries(launch) == ()
    assert on_chip_bytes(launch, SMALL, SIZES) == 3 * TILE + 2 * 4 * 4


def test_with_registers_nothing_does_that_no_product_needs():
    (launch,) = lowered("softmax", *ROW, machine=WITH_REGISTERS).launches
    assert on_chip_bytes(launch, WITH_REGISTERS, SIZES) == 0
    assert register_bytes(launch, WITH_REGISTERS, SIZES) == TILE
    assert register_bytes(launch, SMALL, SIZES) == 0


PRODUCT = (
    "compute(acc, unit=matrix)",
    "precision(acc, dtype=bf16)",
    "pipeline(x, stages=3)",
    "tile(m, size=8)",
    "place(m.outer, level=grid)",
    "tile(n, size=33)",
    "place(n.outer, level=grid)",
    "tile(k, size=31)",
)


def test_with_registers_operands_of_products_lie_in_shared_memory_padded():
    sizes = {"M": 64, "K": 128, "N": 64}
    (launch,) = lowered("matmul_bias_gelu", *PRODUCT, sizes=sizes, machine=WITH_REGISTERS).launches
    both = 2 * 32 * (16 + 64)  # bf16, 8 x 31 padded to 16 x 32, and 31 x 33
    assert on_chip_bytes(launch, WITH_REGISTERS, sizes) == 2 * both, "one of three is in registers"
    assert on_chip_bytes(launch, READS_SHARED, sizes) == 3 * both


def test_what_a_loop_carries_lies_in_registers_all_along():
    sizes = {"M": 64, "K": 128, "N": 64}
    (launch,) = lowered("matmul_bias_gelu", *PRODUCT, sizes=sizes, machine=WITH_REGISTERS).launches
    acc = 4 * 8 * 64
    assert register_bytes(launch, WITH_REGISTERS, sizes) == acc  # y and b are smaller
    spec = spec_of("s[m] = sum(x[m, k], k)", "y[m, k] = x[m, k] * s[m]")
    lines = (*ROW, "tile(k, size=32)")
    (launch,) = lowered(spec, *lines, sizes=SIZES, machine=WITH_REGISTERS).launches
    assert register_bytes(launch, WITH_REGISTERS, SIZES) == 4 * 4 + 4 * 32 * 4


def test_tables_that_are_searched_take_nothing():
    sizes = {"U": 60_000, "B": 256}
    lines = ("tile(b, size=16)", "place(b.outer, level=grid)")
    (launch,) = lowered("map_id", *lines, sizes=sizes, machine=WITH_REGISTERS).launches
    assert on_chip_bytes(launch, WITH_REGISTERS, sizes) == 0
    assert register_bytes(launch, WITH_REGISTERS, sizes) == 16 * 4


def test_what_registers_cannot_hold_is_said_with_the_sizes():
    with pytest.raises(KernelError) as caught:
        lowered("softmax", *ROW, sizes={"M": 8, "K": 4097}, machine=WITH_REGISTERS)
    text = str(caught.value)
    assert "`softmax_0` needs 131072 bytes of `register`, the machine has 65536" in text
    assert "the largest value is `x`: f32[m=4, k=4097], 131072 bytes" in text
    assert caught.value.hint == "use a smaller tile"


def test_what_operands_of_products_need_beyond_shared_memory_is_said():
    with pytest.raises(KernelError) as caught:
        lowered("matmul_bias_gelu", *PRODUCT, sizes={"M": 64, "K": 128, "N": 64}, machine=TIGHT)
    text = str(caught.value)
    assert "needs 10240 bytes of `shared`, the machine has 4096; the largest value is `w`" in text


def test_what_lies_between_two_steps_counts_without_registers():
    spec = spec_of("y[m, k] = exp(x[m, k]) * (x[m, k] + 1.0)")
    (launch,) = lowered(spec, *ROW, sizes=SIZES).launches
    (between,) = temporaries(launch)
    assert (between.dtype, between.axes) == ("f32", ("m", "k"))
    assert on_chip_bytes(launch, SMALL, SIZES) == 3 * TILE
    assert on_chip_bytes(launch, WITH_REGISTERS, SIZES) == 0


def test_what_does_not_fit_is_said_with_the_sizes():
    with pytest.raises(KernelError) as caught:
        lowered("softmax", *ROW, sizes={"M": 8, "K": 8192})
    text = str(caught.value)
    assert f"`softmax_0` needs {3 * 4 * 8192 * 4 + 32} bytes of `local`" in text
    assert "the machine has 262144; the largest value is `x`: f32[m=4, k=8192] x 1, 131072" in text
    assert caught.value.hint == "use a smaller tile or fewer stages"


def test_what_fits_on_the_last_byte_fits():
    spec = spec_of("y[m, k] = exp(x[m, k])")
    sizes = {"M": 1, "K": SMALL.on_chip_bytes // 8}
    (launch,) = lowered(spec, sizes=sizes).launches
    assert on_chip_bytes(launch, SMALL, sizes) == SMALL.on_chip_bytes
    require_fit(launch, SMALL, sizes)
    with pytest.raises(KernelError):
        require_fit(launch, SMALL, {**sizes, "K": sizes["K"] + 1})
