"""Tiles are multiples of the matrix unit's step, and powers of two where the step is one."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir.autoschedule.autoschedule import autoschedule
from ir.edits.edits import neighbours
from ir.lower.lower import lower
from ir.machine import Unit
from ir.unit_steps import MOST_ROUNDS, even_tiles, sectors, tile_sizes, whole_steps
from testing.samples.right import require_right
from testing.samples.samples import SMALL, workload

PRODUCT = workload("matmul_bias_gelu")
SIZES = {"M": 480, "N": 480, "K": 480}


def stepping(*step):
    """A machine whose matrix unit has these rows, columns and depth."""
    unit = SMALL.units["matrix"] if "matrix" in SMALL.units else Unit({"f32": 1e12, "bf16": 1e12})
    return replace(SMALL, units={**SMALL.units, "matrix": replace(unit, step=step)})


def proposed(machine, index):
    schedule = autoschedule(PRODUCT.spec, machine, SIZES)
    edits = neighbours(PRODUCT.spec, schedule, machine, SIZES)
    tiles = [e.new for e in edits if e.new and e.new.verb == "tile" and e.new.subject == index]
    return sorted(
        {d.option("size") for d in tiles}
        | {d.option("size") for d in schedule.of("tile") if d.subject == index}
    )


def test_a_unit_of_24_gets_its_multiples():
    machine = stepping(24, 24, 24)
    assert sectors(PRODUCT.spec, machine) == {"m": 24, "n": 24, "k": 24}
    found = proposed(machine, "n")
    assert {24, 48, 72, 96, 144} <= set(found)
    assert all(size % 24 == 0 for size in found if size >= 24)


def test_the_autoschedule_of_such_a_unit_has_whole_steps_and_is_right():
    machine = stepping(24, 24, 24)
    schedule = autoschedule(PRODUCT.spec, machine, SIZES)
    large = [d.option("size") for d in schedule.of("tile") if d.option("size") >= 24]
    assert large and all(size % 24 == 0 for size in large)
    require_right(lower(PRODUCT.spec, schedule, machine, SIZES), {"M": 30, "N": 50, "K": 25})


@pytest.mark.parametrize("step", [(16, 16, 16), (32, 32, 8), ()])
def test_a_unit_that_steps_by_powers_of_two_gets_those(step):
    machine = stepping(*step)
    assert sectors(PRODUCT.spec, machine) == {}
    found, powers = proposed(machine, "n"), [1 << n for n in range(10)]
    assert set(powers) <= set(found)
    even = set(found) - set(powers)  # these give all processors as many
    width = step[1] if step else 1
    assert len(even) <= MOST_ROUNDS
    assert all(size % width == 0 for size in even if size >= width)


@given(st.integers(1, 2000), st.integers(1, 100))
def test_sizes_grow_to_the_first_that_is_not_below_the_limit(limit, step):
    found = list(tile_sizes(limit, step))
    assert found == sorted(set(found)) and found[-1] >= limit and found[0] == 1
    assert all(size < limit for size in found[:-1])
    assert all(size % step == 0 for size in found if size >= step)


@given(st.integers(1, 10_000), st.integers(1, 200))
def test_the_nearest_whole_steps(size, step):
    found = whole_steps(size, step)
    if 2 * size < step:
        assert found == size
    else:
        assert found % step == 0 and found and abs(found - size) <= step / 2


def test_steps_of_one_keep_every_size():
    assert [whole_steps(n, 1) for n in (1, 16, 64, 8192)] == [1, 16, 64, 8192]


@given(st.integers(1, 5000), st.integers(1, 64), st.integers(1, 200))
def test_even_tiles_leave_no_processor_with_more_rounds_than_needed(extent, parallel, beside):
    for size in even_tiles(extent, parallel, beside):
        tiles = -(-extent // size) * beside
        assert 1 <= size <= extent
        assert tiles <= max(MOST_ROUNDS * parallel, beside)
