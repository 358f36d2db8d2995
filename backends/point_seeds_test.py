"""Large results that are computed element by element: a thread has a vector, whatever rows share."""

from dataclasses import replace

import pytest

from backends.registry import target
from ir.autoschedule.autoschedule import autoschedule
from ir.machine import Rendering
from machines.gpu.point_seeds import with_vectors
from testing.samples.samples import decisions, spec_of

CHIP = replace(target("h200"), rendering=Rendering())  # of a backend that renders all
SIZES = {"M": 4096, "K": 1 << 16}
SCALED = spec_of("y[m, k] = x[m, k] * g[m] + 1.0", inputs="x: f32[M, K], g: f32[M]")
GRID = ("place(m.outer, level=grid)", "place(k.outer, level=grid)")


def threads(spec, m, k, count, sizes=SIZES):
    """The tiles of the two indices and the threads that a schedule has then."""
    tiles = (f"tile(m, size={m})", f"tile(k, size={k})", *GRID, f"threads(y, count={count})")
    found = with_vectors(spec, CHIP, sizes, decisions(spec, *tiles))
    sizes_of = [found.find("tile", i).number("size") for i in "mk"]
    return (*sizes_of, found.find("threads", "y").number("count"))


@pytest.mark.parametrize(
    "m, k, now",
    [
        (1, 1024, (1, 1024, 256)),
        (2, 512, (2, 512, 256)),
        (8, 2048, (1, 1024, 256)),  # more vectors than threads
        (1, 64, (1, 64, 64)),  # fewer than a warp: as it was
    ],
)
def test_each_thread_of_a_large_launch_has_a_vector(m, k, now):
    assert threads(SCALED, m, k, 64) == now


def test_the_seed_of_rows_with_a_scale_each_has_them():
    schedule = autoschedule(SCALED, CHIP, SIZES)
    tiles = [d.number("size") for d in schedule.of("tile")]
    assert tiles[0] * tiles[1] == 4 * schedule.find("threads", "y").number("count")


@pytest.mark.parametrize(
    "equation",
    [
        "y[m, k] = x[m, k] * pad(x[m, k - 1], 0.0)",
        "y[m, k] = x[m, 2 * k % 7]",
        "y[m, k] = cumsum(x[m, k], k)",
    ],
)
def test_others_are_left_alone(equation):
    assert threads(spec_of(equation), 1, 1024, 64) == (1, 1024, 64)


def test_a_transposition_is_left_alone():
    spec = spec_of("y[m, k] = x[k, m] * 2.0", inputs="x: f32[K, M]")
    assert threads(spec, 1, 1024, 64) == (1, 1024, 64)


def test_small_results_are_left_alone():
    assert threads(SCALED, 1, 1024, 64, {"M": 64, "K": 1024}) == (1, 1024, 64)
