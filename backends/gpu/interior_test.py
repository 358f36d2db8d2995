"""Interior tiles: those of which no position needs a check, and no others where most are."""

import pytest

from backends.gpu.blocks import Blocks
from backends.gpu.interior import interior
from backends.gpu.plain_rules import RULES
from ir.spec import Apply, Number
from testing.samples.samples import WITH_TF32, lowered, spec_of

TILES = ("tile(k, size=1)", "place(k.outer, level=loop)", "tile(j, size=32)")
PLACED = (*TILES, "place(j.outer, level=grid)")


def found(value, *lines, inputs="x: f32[6, 500]", out=501):
    spec = spec_of(f"y[i, j]: [6, {out}] = {value}", inputs=inputs, result=f"f32[6, {out}]")
    placed = ("tile(i, size=1)", "place(i.outer, level=grid)", *(lines or PLACED))
    (launch,) = lowered(spec, *placed, sizes={}, machine=WITH_TF32).launches
    return interior(launch, Blocks(launch, RULES))


@pytest.mark.parametrize(
    ("step", "tap", "before", "taps"), [(1, 1, 4, 8), (1, 3, 4, 4), (1, 1, 0, 3), (1, 2, -5, 3)]
)
def test_origins_are_those_of_tiles_that_are_inside(step, tap, before, taps):
    out, size = 501, 500
    made = found(f"sum(pad(x[i, {step} * j + {tap} * k - {before}], 0.0), k={taps})")

    def inside(origin):
        at = [step * j + tap * k - before for j in range(origin, origin + 32) for k in range(taps)]
        return min(at) >= 0 and max(at) < size and origin + 32 <= out

    low, high = made.origins["j"]
    assert [o for o in range(0, out, 32) if low <= o <= high] == [
        o for o in range(0, out, 32) if inside(o)
    ]
    assert made.whole == {"j"}


def test_steps_count():
    made = found("sum(pad(x[i, 2 * j + k - 3], 0.0), k=5)", out=251)
    assert made.origins["j"] == (2, (499 - 62 - 1) // 2)


@pytest.mark.parametrize(
    ("value", "lines", "inputs", "out"),
    [
        ("sum(x[i, j + k], k=8)", PLACED, "x: f32[6, 508]", 501),  # nothing is out of bounds
        ("sum(pad(x[i, j + k - 4], 0.0), k=8)", TILES[:2], "x: f32[6, 500]", 501),  # whole rows
        (
            "sum(pad(x[i, j + k - 200], 0.0), k=300)",
            PLACED,
            "x: f32[6, 500]",
            501,
        ),  # few are inside
        (
            "sum(pad(x[i, j + k - 4], 0.0), k=8)",
            (*PLACED, "persistent(y, programs=1)"),
            "x: f32[6, 500]",
            501,
        ),
    ],
)
def test_others_have_none(value, lines, inputs, out):
    assert found(value, *lines, inputs=inputs, out=out) is None


def test_the_condition_holds_at_interior_origins_alone():
    made = found("sum(pad(x[i, j + k - 4], 0.0), k=8)")

    def value(e, origin):
        match e:
            case Number(number):
                return number
            case Apply("sub", (a, b)):
                return value(a, origin) - value(b, origin)
            case Apply("minimum", (a, b)):
                return min(value(a, origin), value(b, origin))
        return origin

    condition = made.condition
    assert condition.below is None and condition.equal is None  # it asks for 0 or more
    low, high = made.origins["j"]
    for origin in range(0, 512, 32):
        assert (value(condition.at, origin) >= 0) == (low <= origin <= high)
