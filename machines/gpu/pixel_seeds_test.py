"""Other tiles of a convolution's pixels: which are tried, and that they compute the convolution."""

import numpy as np
import pytest

from ir.autoschedule.autoschedule import autoschedule
from ir.nest.nest import Loop
from ir.reference.inputs import random_inputs
from ir.reference.interpret import interpret
from ir.reference.reference import evaluate
from machines.gpu.pixel_seeds import pixel_seeds
from testing.samples.samples import WITH_INSTRUCTIONS, decisions, lowered, spec_of

FIRST = "pad(x[b, p + i - 1, q + j - 1, c], 0.0) * w[i, j, o, c], c, i, j)"


def convolution(result, filters=256, pixels=8):
    """Two images and a few filters; result: the order of its indices."""
    shape = {"b": 2, "o": filters, "p": pixels, "q": pixels}
    return spec_of(
        f"y[{', '.join(result)}] = sum({FIRST}",
        inputs=f"x: tf32[2, {pixels}, {pixels}, 32], w: tf32[3, 3, {filters}, 32]",
        result=f"f32[{', '.join(str(shape[i]) for i in result)}]",
    )


CHANNELS_FIRST, CHANNELS_LAST = convolution("bopq"), convolution("bpqo")
ALONE = (
    "flatten(p, inner=q)",
    "tile(pq, size=64)",
    "tile(o, size=128)",
    "place(pq.outer, level=grid)",
)
MERGED = ("flatten(p, inner=q)", "flatten(b, inner=pq)", "tile(bpq, size=128)", "tile(o, size=128)")
TAPS = (
    "tile(i, size=1)",
    "tile(j, size=1)",
    "place(i.outer, level=loop)",
    "place(j.outer, level=loop)",
)
PRODUCT = ("compute(y, unit=matrix)", "threads(y, count=128)")


def found(spec, *lines):
    first = decisions(spec, *lines, *(TAPS if lines else ()), *PRODUCT)
    return list(pixel_seeds(spec, WITH_INSTRUCTIONS, {}, first))


@pytest.mark.parametrize(
    ("spec", "lines", "count"), [(CHANNELS_FIRST, ALONE, 2), (CHANNELS_LAST, MERGED, 3)]
)
def test_other_tiles_compute_the_convolution(spec, lines, count):
    made = found(spec, *lines)
    assert len(made) == count
    inputs = random_inputs(spec, {}, np.random.default_rng(1))
    expected = evaluate(spec, inputs, {})["y"]
    for _, schedule in made:
        nest = lowered(spec, *map(str, schedule.decisions), sizes={}, machine=WITH_INSTRUCTIONS)
        assert any(isinstance(s, Loop) for s in nest.launches[0].body)
        got = interpret(nest, inputs, {}, rounded=False)["y"]
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)


def test_boxes_cut_the_images_evenly():
    boxes, beside, wide = (s for _, s in found(CHANNELS_LAST, *MERGED))
    assert {str(d) for d in boxes.of("tile")} >= {"tile(o, size=128)", "tile(i, size=1)"}
    assert [d.option("by") for d in boxes.of("copy")] == ["bulk", "bulk"]
    assert {d.number("size") for d in beside.of("tile")} >= {128}
    assert {str(d) for d in wide.of("tile")} >= {"tile(bpq, size=128)", "tile(o, size=256)"}


@pytest.mark.parametrize(
    ("spec", "lines"),
    [
        (convolution("bopq", filters=64), ALONE[:2]),
        (CHANNELS_FIRST, (*ALONE, "split_k(y, over=c, parts=2)")),
        (
            spec_of(
                "y[b, o, p, q] = sum(x[b, p, q, c] * w[o, c], c)",
                inputs="x: tf32[2, 8, 8, 32], w: tf32[128, 32]",
                result="f32[2, 128, 8, 8]",
            ),
            (),
        ),
        (
            spec_of(
                f"y[b, o, p, q] = sum({FIRST}",
                inputs="x: f32[2, 8, 8, 32], w: f32[3, 3, 128, 32]",
                result="f32[2, 128, 8, 8]",
            ),
            (),
        ),
    ],
    ids=["few filters", "in parts", "no windows", "not rounded"],
)
def test_other_kernels_have_none(spec, lines):
    assert found(spec, *lines) == []


@pytest.mark.parametrize(("share", "wide"), [(0.5, True), (1.5, False)])
def test_the_better_judge_chooses(share, wide):
    def cost(nest):
        return share if nest.schedule.of("copy") else 1.0

    schedule = autoschedule(CHANNELS_FIRST, WITH_INSTRUCTIONS, {}, cost=cost)
    assert bool(schedule.of("copy")) == wide


def test_pixels_that_are_read_as_one_index_stay_so():
    spec = spec_of(
        "y[b, o, p, q] = sum(x[b, p * 8 + q + i * 8 + j, c] * w[i, j, o, c], c, i, j)",
        inputs="x: tf32[2, 82, 32], w: tf32[2, 2, 256, 32]",
        result="f32[2, 256, 8, 8]",
    )
    assert not found(spec, *ALONE)


ONE_INDEX = spec_of(
    "y[t, o] = sum(pad(x[t + i * 9 + j - 10, c], 0.0) * w[i, j, o, c], c, i, j)",
    inputs="x: tf32[162, 64], w: tf32[3, 3, 128, 64]",
    result="f32[162, 128]",
)


def test_all_taps_of_a_few_channels_follow_one_another():
    channels = ("tile(c, size=32)", "place(c.outer, level=loop)")
    grid = ("tile(t, size=64)", "tile(o, size=64)", "place(t.outer, level=grid)")
    ((share, schedule),) = found(ONE_INDEX, *grid, "place(o.outer, level=grid)", *channels)
    assert share < 1
    nest = lowered(ONE_INDEX, *map(str, schedule.decisions), sizes={}, machine=WITH_INSTRUCTIONS)
    loops = [s.index for s in nest.launches[0].statements() if isinstance(s, Loop)]
    assert loops == ["c", "i", "j"]
    inputs = random_inputs(ONE_INDEX, {}, np.random.default_rng(1))
    got = interpret(nest, inputs, {}, rounded=False)["y"]
    np.testing.assert_allclose(got, evaluate(ONE_INDEX, inputs, {})["y"], rtol=1e-9, atol=1e-9)


def test_nothing_moves_where_all_channels_are_one_step():
    grid = ("tile(t, size=64)", "tile(o, size=64)", "place(t.outer, level=grid)")
    assert found(ONE_INDEX, *grid, "place(o.outer, level=grid)") == []


PERIODS = spec_of(
    "y[b, o, p, g, q, h] = sum(x[b, p + i, q + j, c] * w[i, j, o, g, h, c], c, i, j)",
    inputs="x: tf32[2, 9, 33, 32], w: tf32[2, 2, 32, 2, 2, 32]",
    result="f32[2, 32, 8, 2, 32, 2]",
)


def test_phases_that_are_stored_in_place_are_all_in_a_tile():
    first = decisions(PERIODS, "tile(o, size=16)", "tile(q, size=16)", *PRODUCT)
    ((_, schedule),) = pixel_seeds(PERIODS, WITH_INSTRUCTIONS, {}, first)
    tiles = {d.subject: d.number("size") for d in schedule.of("tile")}
    assert {i: n for i, n in tiles.items() if n > 1} == {"p": 4} and not {"g", "h"} & {*tiles}
    inputs = random_inputs(PERIODS, {}, np.random.default_rng(1))
    nest = lowered(PERIODS, *map(str, schedule.decisions), sizes={}, machine=WITH_INSTRUCTIONS)
    got = interpret(nest, inputs, {}, rounded=False)["y"]
    np.testing.assert_allclose(got, evaluate(PERIODS, inputs, {})["y"], rtol=1e-5, atol=1e-5)
