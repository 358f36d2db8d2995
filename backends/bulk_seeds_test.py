"""Large matmuls of seeds are copied in bulk, in the tiles that were measured; others stay as the estimate has
them."""

import pytest

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
