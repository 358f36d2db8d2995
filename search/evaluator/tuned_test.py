"""The tuning size of slow runs, and smaller sizes in its place."""

import pytest

from ir.lower.lower import lower
from ir.parse.parse import parse_schedule, parse_spec
from ir.verify import facts
from search.evaluator.testing.acting import CHIP
from search.evaluator.tuned import TILES, RunCost, run_cost, tuning_shape

SPEC = parse_spec(
    '''def scale(x: f32[M, K], g: f32[K]) -> f32[M, K]:
    """Multiply."""
    y[m, k] = x[m, k] * g[k]
    return y
'''
)
TUNED = {"M": 4096, "K": 1000}
EACH = RunCost(1e-3, 0.0)


def nest(schedule):
    return lower(SPEC, parse_schedule(schedule), CHIP, TUNED)


@pytest.fixture
def tiled():
    return nest(
        "schedule(scale)\ntile(m, size=16)\ntile(k, size=64)\nplace(m.outer, level=grid)\nplace(k.outer, level=grid)\n"
    )


def test_a_cost_counts_blocks_and_what_they_compute(tiled):
    small, large = run_cost(tiled, {"M": 16, "K": 64}), run_cost(tiled, {"M": 32, "K": 128})
    assert small.steps > 0 and small.elements >= 16 * 64
    assert large.steps == 4 * small.steps and large.elements == 4 * small.elements
    assert small.seconds(RunCost(1.0, 0.0)) == small.steps


def test_what_is_affordable_is_taken_whole(tiled):
    seconds = run_cost(tiled, TUNED).seconds(EACH)
    assert tuning_shape(tiled, TUNED, 1, EACH, seconds) == (TUNED, False)


@pytest.mark.parametrize("whole", [True, False])
def test_else_each_tiled_size_has_several_tiles_and_an_uneven_tail(tiled, whole):
    seconds = run_cost(tiled, TUNED).seconds(EACH) * (0.99 if whole else 2)
    sizes, reduced = tuning_shape(tiled, TUNED, 1, EACH, seconds, whole)
    assert reduced and sizes.keys() == TUNED.keys()
    for name, tile in (("M", 16), ("K", 64)):
        assert TILES * tile < sizes[name] < (TILES + 1) * tile
    assert tuning_shape(tiled, TUNED, 1, EACH, seconds, whole) == (sizes, True)
    others = {
        tuple(tuning_shape(tiled, TUNED, n, EACH, seconds, whole)[0].values()) for n in range(9)
    }
    assert len(others) > 1, "the seed draws the tail"


def test_nothing_stands_for_it_where_nothing_is_affordable(tiled):
    assert tuning_shape(tiled, TUNED, 1, EACH, 0.0) is None


def test_a_size_is_never_above_the_tuned_one(tiled):
    sizes, reduced = tuning_shape(tiled, {"M": 20, "K": 1000}, 1, RunCost(1.0, 0.0), 30.0)
    assert reduced and sizes["M"] <= 20


def test_the_schedules_of_these_tests_tile(tiled):
    assert dict(tiled.launches[0].tiles) == {"m": 16, "k": 64} and facts(tiled.variant).ranges
