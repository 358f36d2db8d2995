"""The mean over a workload, its roofline, and shapes that are given twice."""

import math

import pytest

from ir.estimate.cost import roofline
from ir.machine import Machine, Space, Unit
from ir.parse.parse import parse_spec
from machines.tiles.tiles import TILES
from search.core.workload import WeightedShape, bound_us, heaviest, mean, words

SCALE = parse_spec(
    '''def scale(x: f32[M], g: f32[M]) -> f32[M]:
    """Multiply."""
    y[m] = x[m] * g[m]
    return y
'''
)
CHIP = Machine(
    name="chip",
    title="A chip",
    backends=("tongue",),
    levels={"grid": 4},
    spaces={"global": Space(1 << 30, 1e9), "local": Space(1 << 16)},
    units={"vector": Unit({"f32": 1e9})},
    model=TILES,
)
SMALL, LARGE = WeightedShape({"M": 4}), WeightedShape({"M": 64}, 3.0)


def test_a_heavier_shape_draws_the_mean_to_itself():
    assert mean([2.0, 32.0], [SMALL, LARGE]) == pytest.approx(2 ** (1 / 4) * 32 ** (3 / 4))
    assert mean([2.0, 8.0], [SMALL, WeightedShape({"M": 64})]) == pytest.approx(4.0)


def test_a_single_time_is_its_own_mean_to_the_last_bit():
    assert mean([0.1], [WeightedShape({"M": 4}, 7.0)]) == 0.1


def test_the_bound_is_the_mean_of_the_shapes_bounds():
    each = [roofline(SCALE, CHIP, shape.sizes).us for shape in (SMALL, LARGE)]
    expected = math.exp((math.log(each[0]) + 3 * math.log(each[1])) / 4)
    assert bound_us(SCALE, CHIP, (SMALL, LARGE)) == pytest.approx(expected)
    assert bound_us(SCALE, CHIP, (SMALL,)) == each[0]


def test_the_heaviest_is_the_first_of_equals():
    assert heaviest((SMALL, LARGE)) == {"M": 64}
    assert heaviest((SMALL, WeightedShape({"M": 9}))) == {"M": 4}


def test_shapes_are_told_with_how_much_they_matter():
    assert words((SMALL,)) == words((WeightedShape({"M": 4}, 7.0),)) == "M=4"
    assert words((SMALL, LARGE)) == "M=4 | M=64 (3 times the weight)"


@pytest.mark.parametrize("weight", [0.0, -1.0, math.inf, math.nan])
def test_a_weight_is_positive_and_finite(weight):
    with pytest.raises(ValueError, match="positive"):
        WeightedShape({"M": 4}, weight)
