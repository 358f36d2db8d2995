"""Depthwise convolutions along rows have blocks of one warp; others have no such seed."""

import numpy as np
import pytest

from ir.autoschedule.autoschedule import autoschedule
from ir.reference.inputs import random_inputs
from ir.reference.interpret import interpret
from ir.reference.reference import evaluate
from machines.gpu.depthwise_seeds import depthwise_seeds
from testing.samples.samples import WITH_THREADS, decisions, lowered, spec_of

SUM = "t[b, c, i, j] = sum({0} * w[c, r, s], r, s)"
INSIDE, EDGES = "x[b, c, i + r, j + s]", "pad(x[b, c, i + r - 1, j + s - 1], 0.0)"
ABOVE = "y[b, c, i, j] = maximum(t[b, c, i, j], 0.0)"


def conv(image=INSIDE, width=250, channels=16, total=SUM, above=ABOVE):
    beyond = 0 if image.startswith("pad") else 2
    shape = f"8, {channels}, {width}, {width}"
    inputs = f"x: f32[8, {channels}, {width + beyond}, {width + beyond}], w: f32[{channels}, 3, 3]"
    given = total.format(image).replace("] =", f"]: [{shape}] =", 1)
    return spec_of(given, above, inputs=inputs, result=f"f32[{shape}]")


def found(spec):
    return list(depthwise_seeds(spec, WITH_THREADS, {}, decisions(spec, "threads(y, count=64)")))


@pytest.mark.parametrize(
    ("spec", "tiles"),
    [
        (conv(), dict(b=1, c=1, i=1)),
        (conv(width=510), dict(b=1, c=1, i=1)),
        (conv(EDGES, 512), dict(b=1, c=1, i=4, j=128)),
        (conv(EDGES, 200), dict(b=1, c=1, i=4, j=128)),
    ],
    ids=["row", "longest row", "edges", "edges of short rows"],
)
def test_a_block_of_one_warp_has_pixels_of_one_channel(spec, tiles):
    ((share, made),) = found(spec)
    cut = {d.subject: d.number("size") for d in made.of("tile")}
    assert {i: n for i, n in cut.items() if i not in "rs"} == tiles
    assert (cut["r"], cut["s"]) == (1, 1) and made.of("threads")[0].number("count") == 32
    nest = lowered(spec, *map(str, made.decisions), sizes={}, machine=WITH_THREADS)
    assert len(nest.launches) == 1 and share < 1


@pytest.mark.parametrize("image", [INSIDE, EDGES])
def test_it_computes_what_the_equations_say(image, monkeypatch):
    monkeypatch.setattr("machines.gpu.depthwise_seeds.LEAST", 1)
    monkeypatch.setattr("machines.gpu.depthwise_seeds.PIECE", 8)
    spec = conv(image, 9, 2)
    ((_, made),) = found(spec)
    nest = lowered(spec, *map(str, made.decisions), sizes={}, machine=WITH_THREADS)
    inputs = random_inputs(spec, {}, np.random.default_rng(1))
    got = interpret(nest, inputs, {})["y"]
    np.testing.assert_allclose(got, evaluate(spec, inputs, {})["y"], rtol=1e-5, atol=1e-5)


def test_such_a_block_is_chosen_where_a_judge_finds_it_hardly_slower():
    spec = conv()

    def chosen(slower):
        def cost(nest):
            whole = nest.schedule.find("tile", "j") is None
            one = nest.schedule.find("tile", "i").number("size") == 1
            return slower if whole and one else 1.0

        made = autoschedule(spec, WITH_THREADS, {}, cost=cost)
        return made.find("tile", "j") is None and made.find("tile", "i").number("size") == 1

    assert chosen(1.05) and not chosen(1.3)


STRIDED = spec_of(
    "y[b, c, i, j]: [8, 16, 250, 250] = sum(x[b, c, i + r, j * 2 + s] * w[c, r, s], r, s)",
    inputs="x: f32[8, 16, 252, 502], w: f32[16, 3, 3]",
    result="f32[8, 16, 250, 250]",
)


@pytest.mark.parametrize(
    "spec",
    [
        conv(width=60, channels=1),  # small
        conv(width=1000),  # longer rows were not measured
        STRIDED,
        conv(total="t[b, c, i, j] = max({0} * w[c, r, s], r, s)"),
        conv(above="y[b, c, j, i] = t[b, c, i, j]"),
        conv(total="t[b, c, i, j] = sum(x[b, d, i + r, j + s] * w[d, r, s], d, r, s)"),
    ],
    ids=["small", "long", "strided", "pooling", "another order", "channels"],
)
def test_other_kernels_have_no_such_seed(spec):
    assert not found(spec)
