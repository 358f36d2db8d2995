"""How wide indices are, and when the launcher can tell that nothing lies outside."""

from dataclasses import replace

import pytest

from backends.gpu.blocks import Blocks, sides
from backends.gpu.plain_rules import RULES
from backends.gpu.tile import BlockWidth, Even, Name
from ir.machine import Unit
from ir.nest.nest import Dot
from ir.sizes import power_of_two
from ir.spec import Number, Size
from testing.samples.samples import WITH_TF32, lowered, spec_of, statements

SCALE = spec_of("y[m, k] = x[m, k] * 2.0")
PRODUCT = spec_of(
    "acc[m, n] = sum(x[m, k] * w[k, n], k)",
    "y[m, n] = acc[m, n] + 1.0",
    inputs="x: f16[M, K], w: f16[K, N]",
    result="f16[M, N]",
)
EVEN_K = Name("even", "k")
DOT = ("compute(acc, unit=matrix)",)


def blocks(spec, *lines, **sizes):
    nest = lowered(spec, *lines, sizes=sizes or dict(M=64, K=64), machine=WITH_TF32)
    return Blocks(nest.launches[-1], RULES)


def product(m, n, k):
    lines = (
        f"tile(m, size={m})",
        f"tile(n, size={n})",
        f"tile(k, size={k})",
        "place(m.outer, level=grid)",
        "place(n.outer, level=grid)",
    )
    return blocks(PRODUCT, *lines, *DOT, M=64, N=64, K=64)


@pytest.mark.parametrize(("number", "power"), [(1, 1), (2, 2), (3, 4), (16, 16), (17, 32)])
def test_the_next_power_of_two(number, power):
    assert power_of_two(number) == power


def test_a_tile_of_one_element_has_no_axis():
    found = blocks(SCALE, "tile(m, size=1)", "place(m.outer, level=grid)")
    assert found["m"].scalar and not found["m"].checks and not found["m"].flag
    assert found.axes(("m", "k")) == ("k",)


def test_a_tile_is_as_wide_as_the_next_power_of_two():
    found = blocks(SCALE, "tile(m, size=12)", "place(m.outer, level=grid)")
    assert (found["m"].width, found["m"].tile) == (16, 12)
    assert found["m"].checks and not found["m"].flag, "the padding is there whatever the size"


def test_an_untiled_index_is_as_wide_as_the_launch_says():
    found = blocks(SCALE, "tile(m, size=16)", "place(m.outer, level=grid)")
    width = BlockWidth(Size("K"), 1)
    assert (found["k"].width, found["k"].tile, found["k"].launched) == (0, 0, width)
    assert found.shape(("m", "k")) == (Number(16), Name("width", "k"))
    assert dict(found.constants()) == {
        Name("even", "m"): Even(Size("M"), Number(16)),
        Name("width", "k"): width,
        Name("even", "k"): Even(Size("K"), width),
    }


def test_an_index_of_one_element_is_zero():
    spec = spec_of("y[m, k] = x[m, k] * 2.0", inputs="x: f32[1, K]", result="f32[1, K]")
    found = blocks(spec, K=5)
    assert found["m"].scalar and found["m"].zero and not found["k"].zero


@pytest.mark.parametrize("size", [1, 5, 16, 33])
def test_sides_of_a_product_of_known_sizes_are_wide_enough(size):
    spec = spec_of(
        "y[m, n] = sum(x[m, k] * w[k, n], k)",
        inputs=f"x: f16[M, {size}], w: f16[{size}, N]",
        result="f32[M, N]",
    )
    found = blocks(spec, "compute(y, unit=matrix)", M=64, N=64)
    assert found["k"].width == max(RULES.least_side, power_of_two(size))


def test_an_index_of_a_known_size_needs_no_constant():
    spec = spec_of("y[m, i] = x[m, i] * 2.0", inputs="x: f32[M, 3]", result="f32[M, 3]")
    found = blocks(spec, "tile(m, size=16)", "place(m.outer, level=grid)", M=64)
    assert (found["i"].width, found["i"].wide) == (4, Number(4))
    assert found["i"].checks and not found["i"].flag
    even = spec_of("y[m, i] = x[m, i] * 2.0", inputs="x: f32[M, 8]", result="f32[M, 8]")
    assert not blocks(even, M=64)["i"].checks


@pytest.mark.parametrize(
    ("tiles", "widths"),
    [((32, 32, 32), (32, 32, 32)), ((4, 32, 8), (16, 32, 16)), ((32, 1, 32), (32, 16, 32))],
)
def test_sides_of_a_product_are_at_least_sixteen_wide(tiles, widths):
    found = product(*tiles)
    assert tuple(found[i].width for i in "mnk") == widths
    for index, tile, width in zip("mnk", tiles, widths, strict=True):
        assert found[index].least == (RULES.least_side if tile < RULES.least_side else 1)
        assert found[index].checks
        assert found[index].flag == (tile == width)


def test_operands_of_8_bits_are_32_wide_along_the_summed_index():
    unit = Unit({"f8e4m3": 1e9}, step=(16, 16, 16))
    machine = replace(WITH_TF32, units={**WITH_TF32.units, "matrix": unit})
    spec = spec_of(
        "y[m, n] = sum(x[m, k] * w[k, n], k)",
        inputs="x: f8e4m3[M, K], w: f8e4m3[K, N]",
        result="f32[M, N]",
    )
    lines = (
        "tile(m, size=8)",
        "tile(n, size=16)",
        "tile(k, size=16)",
        "place(m.outer, level=grid)",
        "place(n.outer, level=grid)",
        "compute(y, unit=matrix)",
    )
    nest = lowered(spec, *lines, sizes=dict(M=64, N=64, K=64), machine=machine)
    found = Blocks(nest.launches[-1], RULES)
    assert [found[i].width for i in "mnk"] == [16, 16, 32]


def test_a_side_of_several_indices_is_widened_along_the_largest():
    spec = spec_of(
        "acc[m, p, n] = sum(x[m, p, k] * w[k, n], k)",
        "y[m, p, n] = acc[m, p, n] + 1.0",
        inputs="x: f16[M, P, K], w: f16[K, N]",
        result="f16[M, P, N]",
    )
    lines = (
        "tile(m, size=2)",
        "tile(p, size=4)",
        "tile(n, size=16)",
        "tile(k, size=16)",
        "place(m.outer, level=grid)",
        "place(p.outer, level=grid)",
        "place(n.outer, level=grid)",
    )
    found = blocks(spec, *lines, *DOT, M=8, P=8, N=32, K=32)
    assert (found["m"].width, found["p"].width) == (2, 8)


def test_rows_columns_and_sums_of_a_product():
    nest = lowered(PRODUCT, *DOT, sizes=dict(M=8, N=8, K=8), machine=WITH_TF32)
    (dot,) = statements(nest, Dot)
    values = {v.name: v for v in nest.launches[0].values}
    assert sides(dot, values) == (("m",), ("n",), ("k",))


def test_a_jagged_index_has_its_tile_and_no_flag():
    lines = ("tile(b, size=1)", "tile(l, size=8)", "place(b.outer, level=grid)")
    nest = lowered("embedding_bag", *lines, machine=WITH_TF32)
    block = Blocks(nest.launches[0], RULES)["l"]
    assert (block.width, block.checks, block.flag) == (8, True, False)


def test_a_loop_that_starts_within_a_tile_has_no_flag():
    """Where a part of a split begins at a multiple of the tile, whole tiles are even."""
    spec = spec_of("s[m] = sum(x[m, k], k)", "y[m] = s[m] + 1.0", result="f32[M]")
    lines = (
        "split_k(s, over=k, parts=4)",
        "tile(m, size=4)",
        "tile(k, size=16)",
        "place(m.outer, level=grid)",
    )
    nest = lowered(spec, *lines, sizes=dict(M=8, K=256), machine=WITH_TF32)
    block = Blocks(nest.launches[0], RULES)["k"]
    assert block.flag
    assert dict(Blocks(nest.launches[0], RULES).constants())[EVEN_K] == Even(Size("K"), Number(16))


def test_a_tile_that_a_product_widens_ends_where_it_does_whatever_the_size():
    """Else what the next tile holds counts twice."""
    spec = spec_of(
        "y[m, n] = sum(x[m, k] * w[k, n], k)",
        inputs="x: f32[64, 32], w: f32[32, 64]",
        result="f32[64, 64]",
    )
    lines = ("tile(m, size=16)", "place(m.outer, level=grid)", "tile(k, size=8)")
    found = Blocks(lowered(spec, *lines, "compute(y, unit=matrix)", sizes={}).launches[-1], RULES)
    assert (found["k"].tile, found["k"].width) == (8, RULES.least_side) and found["k"].checks
    assert not found["m"].checks and not found["n"].checks
