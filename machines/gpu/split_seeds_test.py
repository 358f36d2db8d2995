"""3xTF32 matmuls that split their operands in the loop have larger tiles; others have no such seed."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from ir.parse.schedule import parse_schedule
from ir.reference.inputs import random_inputs
from ir.reference.interpret import interpret
from ir.reference.reference import evaluate
from machines.gpu.split_seeds import split_seeds
from machines.registry import read
from testing.samples.samples import spec_of

H200 = Path(__file__).parents[2] / "backends" / "targets" / "h200.toml"
CHIP = read(tomllib.loads(H200.read_text(encoding="utf-8")))
ALONG_K, ALONG_N = "x[i, k] * w[j, k]", "x[i, k] * w[k, j]"
SEED = """schedule(f)
tile(i, size=128)
tile(j, size=64)
tile(k, size=32)
place(i.outer, level=grid)
place(j.outer, level=grid)
place(k.outer, level=loop)
compute({0}, unit=matrix)
precision({0}, dtype=tf32x3)
pipeline(x, stages=3)
pipeline(w, stages=3)
{1}
threads({0}, count=256)
"""


def matmul(terms=ALONG_K, m=2048, n=4096, k=512, lines=(), more=""):
    shape = f"{k}, {n}" if terms == ALONG_N else f"{n}, {k}"
    first = "t" if lines else "y"
    return spec_of(
        f"{first}[i, j] = sum({terms}, k)",
        *lines,
        inputs=f"x: f32[{m}, {k}], w: f32[{shape}]{more}",
        result=f"f32[{m}, {n}]",
    )


def seed(spec, more="rasterize(i, size=8, over=j)", drop=()):
    """A seed with smaller tiles."""
    text = SEED.format(spec.equations[0].target, more)
    text = text.replace("threads(t,", "threads(y,")
    kept = [line for line in text.splitlines() if not line.startswith(drop)] if drop else [text]
    return parse_schedule("\n".join(kept))


def found(spec, first=None, chip=CHIP):
    return list(split_seeds(spec, chip, {}, first or seed(spec)))


def tiles(made):
    return {d.subject: d.number("size") for d in made.of("tile")}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (matmul(), dict(i=128, j=128, k=32)),
        (matmul(ALONG_N), dict(i=256, j=64, k=32)),
        (matmul(lines=("y[i, j] = maximum(t[i, j], 0.0)",)), dict(i=128, j=128, k=32)),
    ],
    ids=["along K", "along N", "epilogue"],
)
def test_tiles_are_larger_where_blocks_still_fill_the_chip(spec, expected):
    ((share, made),) = found(spec)
    assert tiles(made) == expected and share < 1
    assert made.find("rasterize", "i") is not None
    assert [d.number("count") for d in made.of("threads")] == [256]
    assert len(lower(spec, made, CHIP, {}).launches) == 1


def test_one_tile_of_rows_has_no_order():
    spec = matmul(m=128, n=1 << 15)
    first = seed(spec, drop=("tile(i", "place(i"))
    ((_, made),) = found(spec, first)
    assert tiles(made) == dict(j=128, k=32) and not made.of("rasterize")
    assert lower(spec, made, CHIP, {})


def test_blocks_of_a_matmul_in_parts_are_counted_with_their_parts():
    spec = matmul(ALONG_N, m=256, n=256, k=1 << 16)
    assert not found(spec)
    more = "split_k(y, over=k, parts=32)\nthreads(y_parts, count=128)"
    ((_, made),) = found(spec, seed(spec, more))
    assert tiles(made) == dict(j=64, k=32)
    threads = {d.subject: d.number("count") for d in made.of("threads")}
    assert threads == {"y_parts": 256, "y": 256}
    assert len(lower(spec, made, CHIP, {}).launches) == 2


def test_it_computes_what_the_equations_say(monkeypatch):
    monkeypatch.setattr("machines.gpu.split_seeds.FILLED", 0)
    for terms in (ALONG_K, ALONG_N):
        spec = matmul(terms, 256, 128, 64)
        ((_, made),) = found(spec, seed(spec, ""))
        inputs = random_inputs(spec, {}, np.random.default_rng(1))
        got = interpret(lower(spec, made, CHIP, {}), inputs, {})["y"]
        np.testing.assert_allclose(got, evaluate(spec, inputs, {})["y"], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("slower", "chosen"), [(1.25, True), (1.4, False)])
def test_such_tiles_are_chosen_where_a_judge_finds_them_hardly_slower(slower, chosen):
    large = dict(i=128, j=128, k=32)

    def cost(nest):
        if len(nest.launches) > 1:
            return 2.0
        return slower if tiles(nest.schedule) == large else 1.0

    made = autoschedule(matmul(), CHIP, {}, cost=cost)
    assert made.of("precision") and (tiles(made) == large) == chosen


@pytest.mark.parametrize(
    "spec",
    [
        matmul(m=256, n=512),  # too few blocks
        matmul(m=64, n=1 << 16),  # rows that do not fill a tile
        matmul(lines=("y[i, j] = t[i, j] + r[i, j]",), more=", r: f32[2048, 4096]"),
        matmul("(x[i, k] * 2.0) * w[j, k]"),
    ],
    ids=["few", "short", "residual", "computed"],
)
def test_other_kernels_have_no_such_seed(spec):
    assert not found(spec)


def test_parts_that_launches_of_their_own_make_stay():
    spec = matmul()
    assert not found(spec, seed(spec, "kernel(y_al)\nkernel(y_bl)"))
