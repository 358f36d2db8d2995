"""Kernels that put phases between each other have blocks of one warp; others have no such seed."""

import numpy as np
import pytest

from ir.autoschedule.autoschedule import autoschedule
from ir.reference.inputs import random_inputs
from ir.reference.interpret import interpret
from ir.reference.reference import evaluate
from machines.gpu.phase_seeds import phase_seeds
from testing.samples.samples import WITH_THREADS, decisions, lowered, spec_of

GATHERED = "y[b, o, i, j]: [{0}] = tanh(x[b, (i + 1) % 2 * 2 + (j + 1) % 2, o, (i + 1) // 2, (j + 1) // 2])"
APART = "y[b, o, i, r, j, s] = tanh(x[b, r * 2 + s, o, i, j])"


def gathered(shape="8, 64, 129, 129"):
    b, o, height, width = map(int, shape.split(", "))
    inputs = f"x: f32[{b}, 4, {o}, {height // 2 + 1}, {width // 2 + 1}]"
    return spec_of(GATHERED.format(shape), inputs=inputs, result=f"f32[{shape}]")


def apart(height, width, images=8, channels=64):
    inputs = f"x: f32[{images}, 4, {channels}, {height}, {width}]"
    result = f"f32[{images}, {channels}, {height}, 2, {width}, 2]"
    return spec_of(APART, inputs=inputs, result=result)


def found(spec):
    return list(phase_seeds(spec, WITH_THREADS, {}, decisions(spec, "threads(y, count=64)")))


@pytest.mark.parametrize(
    ("spec", "tiles"),
    [
        (gathered(), dict(b=1, o=1, i=8, j=64)),
        (apart(32, 128), dict(b=1, o=1, i=2, r=1)),
        (apart(65, 65), dict(b=1, o=1, i=16, r=1, j=16)),
        (apart(48, 32, channels=128), dict(b=1, o=1, i=8, r=1)),
    ],
)
def test_a_block_of_one_warp_has_pieces_of_rows(spec, tiles):
    ((share, made),) = found(spec)
    assert {d.subject: d.number("size") for d in made.of("tile")} == tiles
    assert made.of("threads")[0].number("count") == 32
    nest = lowered(spec, *map(str, made.decisions), sizes={}, machine=WITH_THREADS)
    assert len(nest.launches) == 1 and share < 1


def test_it_computes_what_the_equations_say(monkeypatch):
    monkeypatch.setattr("machines.gpu.phase_seeds.LEAST", 1)
    for spec in (gathered("1, 2, 33, 67"), apart(9, 16, 2, 3)):
        ((_, made),) = found(spec)
        nest = lowered(spec, *map(str, made.decisions), sizes={}, machine=WITH_THREADS)
        inputs = random_inputs(spec, {}, np.random.default_rng(1))
        got = interpret(nest, inputs, {})["y"]
        np.testing.assert_allclose(got, evaluate(spec, inputs, {})["y"], rtol=1e-6, atol=1e-6)


def test_such_a_block_is_chosen_where_a_judge_finds_it_hardly_slower():
    spec = gathered()

    def chosen(slower):
        def cost(nest):
            one = (
                dict(i=8, j=64).items()
                <= {d.subject: d.number("size") for d in nest.schedule.of("tile")}.items()
            )
            return slower if one else 1.0

        made = autoschedule(spec, WITH_THREADS, {}, cost=cost)
        return made.find("tile", "j").number("size"), made.of("threads")[0].number("count")

    assert chosen(1.05) == (64, 32)
    assert chosen(1.3) != (64, 32)


@pytest.mark.parametrize(
    "spec",
    [
        gathered("1, 2, 33, 67"),  # small
        spec_of(
            "y[b, o, i, j] = tanh(x[b, o, i, j])",
            inputs="x: f32[8, 64, 128, 128]",
            result="f32[8, 64, 128, 128]",
        ),
        spec_of(
            "y[b, o, i] = max(x[b, j % 2, o, i, j // 2], j=128)",
            inputs="x: f32[8, 2, 64, 4096, 64]",
            result="f32[8, 64, 4096]",
        ),
    ],
)
def test_other_kernels_have_no_such_seed(spec):
    assert not found(spec)
