"""Large matmuls of seeds are copied in bulk, in the tiles that were measured; others stay as the estimate has
them."""

import pytest

from backends.compiled import Kernels
from backends.registry import backend, served_by, target
from ir.autoschedule.autoschedule import autoschedule
from ir.parse.parse import parse_spec


def seed(rows, columns, summed=4096, dtype="bf16", machine="h200", language="triton", last="c"):
    """The seed of a matmul with a residual in its epilogue."""
    text = (
        f"def f(a: {dtype}[{rows}, {summed}], b: {dtype}[{columns}, {summed}],"
        f' x: {dtype}[{rows}, {columns}]) -> {dtype}[{rows}, {columns}]:\n    """F."""\n'
        "    s[m, n] = sum(f32(a[m, k]) * f32(b[n, k]), k)\n"
        f"    c[m, n] = {dtype}(s[m, n] + f32(x[m, n]))\n    return c\n"
    )
    served = served_by(target(machine), backend(language))
    return autoschedule(parse_spec(text), served, {})


def cut(schedule):
    """Tile sizes, pipeline stages, and what is copied in bulk."""
    tiles = {d.subject: d.number("size") for d in schedule.of("tile")}
    stages = {d.number("stages") for d in schedule.of("pipeline")}
    return tiles, stages, sorted(d.subject for d in schedule.of("copy"))


def test_a_result_of_many_tiles_has_wide_ones():
    assert cut(seed(2048, 4096)) == (dict(m=128, n=256, k=64), {3}, ["a", "b"])


def test_a_result_of_fewer_tiles_has_square_ones():
    assert cut(seed(2048, 1024)) == (dict(m=128, n=128, k=64), {4}, ["a", "b"])


@pytest.mark.parametrize(
    "other",
    [
        dict(rows=256, columns=256),  # too few tiles for the multiprocessors
        dict(rows=2048, columns=4096, dtype="f32"),
        dict(rows=2048, columns=4096, machine="a100"),  # without an engine for bulk copies
        dict(rows=2048, columns=4096, machine="mi300"),
        dict(rows=2048, columns=4096, summed=4099),  # rows at addresses the engine cannot take
    ],
)
def test_other_matmuls_stay(other):
    assert not seed(**other).of("copy")


def test_where_a_backend_has_roles_blocks_are_persistent():
    assert seed(2048, 4096, language="cuda").of("persistent")
    assert not seed(2048, 4096).of("persistent")


def test_a_strided_window_is_no_box_whatever_a_better_judge_says():
    """Its parts in TF32 are copied by threads."""
    spec = parse_spec(
        '''def strided(x: f32[10, 128, 56, 56], w: f32[128, 128, 3, 3]) -> f32[10, 128, 28, 28]:
    """A convolution."""
    y[n, o, h, v] = sum(pad(x[n, c, h * 2 + r - 1, v * 2 + s - 1], 0.0) * w[o, c, r, s], c, r, s)
    return y
'''
    )
    made = Kernels(target("h200"), backend("triton"), ("y",), guessed=True)
    nest, source = made.emit(spec)
    assert "tf32" in str(nest.schedule) and not nest.schedule.of("copy")


@pytest.mark.parametrize(("chip", "boxes"), [("h200", ["w", "x"]), ("a100", [])])
def test_an_image_with_channels_first_is_read_in_boxes(chip, boxes):
    """A convolution of one pixel, rounded behind its loads."""
    spec = parse_spec(
        '''def mixed(x: f32[8, 480, 50176], w: f32[128, 480]) -> f32[8, 128, 50176]:
    """A convolution."""
    y[n, o, p] = sum(x[n, c, p] * w[o, c], c)
    return y
'''
    )
    made = Kernels(target(chip), backend("triton"), ("y",), guessed=True)
    nest, source = made.emit(spec)
    assert sorted(d.subject for d in nest.schedule.of("copy")) == boxes
    assert ("y = tl.trans(y)" in source) == bool(boxes)


def test_steps_of_a_recurrence_on_the_threads_have_the_most_of_equally_good_tiles():
    """On an H200 512 steps of this take 39 ms in tiles of 2 x 4, and 62 ms in tiles of 2 x 2."""
    spec = parse_spec(
        '''def steps(x0: f32[10, 256], w: f32[768, 256], g: f32[512, 10, 768]) -> f32[512, 10, 256]:
    """A GRU."""
    before[i, j, k] = where(i == 0, x0[j, k], pad(h[i - 1, j, k], 0.0))
    a[i, j, l] = sum(before[i, j, k] * w[l, k], k)
    b[i, j, l] = sum(before[i, j, k] * w[256 + l, k], k)
    c[i, j, l] = sum(before[i, j, k] * w[512 + l, k], k)
    r[i, j, l] = sigmoid(g[i, j, l] + a[i, j, l])
    u[i, j, l] = sigmoid(g[i, j, 256 + l] + b[i, j, l])
    n[i, j, l] = tanh(g[i, j, 512 + l] + r[i, j, l] * c[i, j, l])
    h[i, j, l] = n[i, j, l] + u[i, j, l] * (where(i == 0, x0[j, l], pad(h[i - 1, j, l], 0.0)) - n[i, j, l])
    return h
'''
    )
    nest, _ = Kernels(target("h200"), backend("triton"), guessed=True).emit(spec)
    tiles = {d.subject: d.number("size") for d in nest.schedule.of("tile")}
    assert (tiles["j"], tiles["l"]) == (2, 4)
