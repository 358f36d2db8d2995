"""The integers that place thread blocks: every tile exactly once, whatever the counts."""

from dataclasses import replace
from math import prod

import pytest

from backends.gpu.grid import grid_statements, tile_counts
from backends.gpu.text import scalar_text, statement_lines
from ir.nest.nest import Bound, Cluster, GridAxis, Launch, Loop, Rasterization
from ir.spec import Apply, Index, Number, Size

SIZES = {"H": 3, "M": 100, "N": 37}
AXES = (GridAxis("h", 1, Size("H")), GridAxis("m", 16, Size("M")), GridAxis("n", 8, Size("N")))
EMPTY = Launch("f_0", (), (), (), (), (), (), (("n", 8),), ())


def cdiv(a, b):
    return -(-a // b)


def walked(launch, **sizes):
    """The origins that each thread block computes, in the order of their numbers."""
    sizes = sizes or SIZES
    count = prod(eval(scalar_text(n), {"cdiv": cdiv, **sizes}) for n in tile_counts(launch))
    found = []
    for tile in range(count):
        names = {"tile": tile, "cdiv": cdiv, **sizes}
        for line in statement_lines(grid_statements(launch)):
            exec(line, names)
        found.append(tuple(names[f"{g.index}_at"] for g in launch.grid))
    return found


def tiles(axes, **sizes):
    """The origins of all tiles, the last index fastest."""
    found = [()]
    for g in axes:
        size = (sizes or SIZES)[g.size.name]
        found = [(*at, origin) for at in found for origin in range(0, size, g.tile)]
    return found


@pytest.mark.parametrize("count", [1, 2, 3])
def test_programs_walk_the_axes_the_last_one_fastest(count):
    assert walked(replace(EMPTY, grid=AXES[:count])) == tiles(AXES[:count])


@pytest.mark.parametrize("rows", [1, 7, 16, 17, 31, 100, 129])
@pytest.mark.parametrize("columns", [1, 8, 9, 55])
@pytest.mark.parametrize("size", [1, 2, 4, 8])
@pytest.mark.parametrize("axes", [AXES[1:], AXES])
def test_a_group_covers_each_tile_once(rows, columns, size, axes):
    sizes = dict(H=3, M=rows, N=columns)
    found = walked(replace(EMPTY, grid=axes, rasterization=Rasterization("m", "n", size)), **sizes)
    assert len(found) == len(set(found))
    assert set(found) == set(tiles(axes, **sizes))


@pytest.mark.parametrize("rows", [32, 64, 96, 128])
@pytest.mark.parametrize("rasterization", [None, Rasterization("m", "n", 4)])
@pytest.mark.parametrize("axes", [AXES[1:], AXES])
def test_blocks_of_a_cluster_are_neighbours_along_its_index(rows, rasterization, axes):
    sizes = dict(H=3, M=rows, N=37)
    launch = replace(EMPTY, grid=axes, rasterization=rasterization, cluster=Cluster("m", 2))
    found = walked(launch, **sizes, m_cluster=2)
    assert len(found) == len(set(found)) and set(found) == set(tiles(axes, **sizes))
    m = len(axes) - 2
    for first, second in zip(found[::2], found[1::2]):
        assert second == (*first[:m], first[m] + 16, *first[m + 1 :]) and first[m] % 32 == 0
    alone = walked(launch, **sizes, m_cluster=1)
    assert alone == walked(replace(launch, cluster=None), **sizes)


def test_a_group_walks_along_the_other_index_before_the_next_rows():
    found = walked(replace(EMPTY, grid=AXES[1:], rasterization=Rasterization("m", "n", 4)))
    assert found[:6] == [(0, 0), (16, 0), (32, 0), (48, 0), (0, 8), (16, 8)]
    assert found[20:24] == [(64, 0), (80, 0), (96, 0), (64, 8)], "the last group has three rows"


def test_a_group_may_walk_the_axes_the_other_way():
    found = walked(replace(EMPTY, grid=AXES, rasterization=Rasterization("n", "m", 2)))
    assert set(found) == set(tiles(AXES))
    assert found[:3] == [(0, 0, 0), (0, 0, 8), (0, 16, 0)]


def cut_short(low=Number(0)):
    """A loop over n up to the end of m's tile."""
    end = Apply("minimum", (Size("N"), Apply("add", (Index("m"), Number(16)))))
    return Loop("n", 8, Bound(size=low), Bound(size=end), ())


def test_the_longest_programs_begin_first():
    launch = replace(EMPTY, grid=AXES[:2], body=(cut_short(),))
    found = walked(launch)
    assert sorted(found) == tiles(AXES[:2])
    assert [m for h, m in found if h == 0] == [96, 80, 64, 48, 32, 16, 0]


def test_a_loop_that_starts_later_too_is_no_longer_later():
    launch = replace(EMPTY, grid=AXES[:2], body=(cut_short(Index("m")),))
    assert walked(launch) == tiles(AXES[:2])


def test_a_launch_without_a_grid_has_one_program():
    assert tile_counts(EMPTY) == ()
    assert grid_statements(EMPTY) == ()


def test_sizes_that_are_sums_are_counted_whole():
    """A tile of one element counts all of an index, here of N + 1."""
    axes = (GridAxis("m", 16, Size("M")), GridAxis("n", 1, Apply("add", (Size("N"), Number(1)))))
    found = walked(replace(EMPTY, grid=axes))
    assert len(found) == len(set(found)) == 7 * 38
    assert max(n for _, n in found) == 37
    assert len(walked(replace(EMPTY, grid=axes[1:]))) == 38
