"""How much of boxes is copied for nothing."""

import pytest

from ir.lower.lower import lower
from machines.gpu.boxes import in_steps_of_one, share_inside
from testing.samples.samples import WITH_THREADS, decisions, spec_of


def nest_of(*lines, columns=24):
    spec = spec_of(
        f"y[m, n]: [100, {columns}] = sum(x[m * 2, k] * w[k, n], k)",
        inputs=f"x: f16[200, 64], w: f16[64, {columns}]",
        result=f"f32[100, {columns}]",
    )
    made = (f"tile({i}, size={n})" for i, n in zip("mnk", lines, strict=False))
    placed = ("place(m.outer, level=grid)", "place(n.outer, level=grid)")
    return lower(spec, decisions(spec, *made, *placed), WITH_THREADS, {})


@pytest.mark.parametrize(
    ("tiles", "tensor", "expected"),
    [
        ((64, 16), "x", 100 / 128),
        ((32, 16), "x", 100 / 128),
        ((16, 16), "x", 100 / 112),
        ((64, 16), "w", 24 / 32),
        ((64, 8), "w", 1.0),
    ],
)
def test_the_share_of_boxes_that_is_inside(tiles, tensor, expected):
    assert share_inside(nest_of(*tiles), {tensor}, {}) == pytest.approx(expected)


def test_the_least_of_several_counts():
    nest = nest_of(16, 16)
    assert share_inside(nest, {"x", "w"}, {}) == pytest.approx(24 / 32)
    assert share_inside(nest, set(), {}) == 1.0


def test_of_windows_alone_where_that_is_asked():
    nest = nest_of(16, 16)
    assert share_inside(nest, {"x", "w"}, {}, windows=True) == 1.0
    spec = spec_of(
        "y[m, n] = sum(x[m + r, k] * w[r, k, n], r, k)",
        inputs="x: f16[66, 64], w: f16[3, 64, 16]",
        result="f32[64, 16]",
    )
    tiles = (
        "tile(m, size=48)",
        "tile(r, size=1)",
        "tile(k, size=16)",
        "place(m.outer, level=grid)",
    )
    slides = lower(spec, decisions(spec, *tiles), WITH_THREADS, {})
    assert share_inside(slides, {"x", "w"}, {}, windows=True) == pytest.approx(64 / 128)


def test_steps_of_a_box():
    assert in_steps_of_one(nest_of(16, 16), {"w"})
    assert not in_steps_of_one(nest_of(16, 16), {"x"})
    assert in_steps_of_one(nest_of(1, 16), {"x"})
