"""How many elements of a gather share a sector."""

import pytest

from ir.lower.lower import lower
from ir.nest.neighbours import contiguous, neighbours
from ir.nest.nest import Load
from testing.samples.samples import WITH_THREADS, decisions, spec_of

SECTOR = 8  # elements


def found(equation, inputs, how=neighbours, unit=SECTOR, **extents):
    spec = spec_of(equation, inputs=inputs, result="f32[64, 64]")
    nest = lower(
        spec, decisions(spec, "tile(m, size=1)", "place(m.outer, level=grid)"), WITH_THREADS, {}
    )
    (launch,) = nest.launches
    move = next(s for s in launch.statements() if isinstance(s, Load) and s.tensor == "x")
    shape = tuple(int(n.value) for n in next(t for t in spec.inputs if t.name == "x").shape)
    return how(launch, move, shape, extents, unit)


@pytest.mark.parametrize(
    ("position", "shape", "expected"),
    [
        ("m, k", "64, 64", 8),
        ("m, k // 2", "64, 64", 16),
        ("k % 2, m, k // 2", "2, 64, 32", 8),
        ("m, 63 - k", "64, 64", 8),
        ("k, m", "64, 64", 1),
    ],
)
def test_neighbours_along_an_index(position, shape, expected):
    assert found(f"y[m, k]: [64, 64] = x[{position}] + 1.0", f"x: f32[{shape}]", k=64) == expected


def test_the_index_along_which_most_are_neighbours_counts():
    assert found("y[m, k]: [64, 64] = x[k, m % 64] + 1.0", "x: f32[64, 64]", m=64, k=64) == 8


def test_of_positions_in_the_data_nothing_is_known():
    inputs = "x: f32[64, 64], at: i32[64]"
    assert found("y[m, k]: [64, 64] = x[m, at[k]] + 1.0", inputs, k=64) == 1


@pytest.mark.parametrize(
    ("position", "shape", "expected"),
    [
        ("m, k // 4 % 16, k % 4", "64, 16, 4", 4),
        ("m, k // 2, k % 2", "64, 32, 2", 4),
        ("m // 2, m % 2 + k // 8, k % 8", "32, 9, 8", 4),
        ("m, k // 3 % 3, k % 3", "64, 3, 3", 1),
        ("m, 63 - k", "64, 64", 1),
        ("k, m", "64, 64", 4),
        ("m, k + m % 2", "64, 66", 1),
    ],
)
def test_elements_of_a_gather_side_by_side(position, shape, expected):
    equation = f"y[m, k]: [64, 64] = x[{position}] + 1.0"
    assert found(equation, f"x: f32[{shape}]", contiguous, 4, m=64, k=64) == expected


def test_of_positions_in_the_data_none_is_known_to_lie_beside_another():
    inputs = "x: f32[64, 64], at: i32[64]"
    assert found("y[m, k]: [64, 64] = x[m, at[k]] + 1.0", inputs, contiguous, 4, k=64) == 1
