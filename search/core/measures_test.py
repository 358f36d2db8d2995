"""Measures find a candidate's cell from the figures of its evaluation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir.errors import KernelError
from ir.machine import Machine, Space, Unit
from machines.tiles.tiles import TILES
from search.core.measures import MEASURES, cell, named

CHIP = Machine(
    name="chip",
    title="A chip",
    backends=("tongue",),
    levels={"grid": 4},
    spaces={"global": Space(1 << 30, 1e9), "local": Space(1000)},
    units={"vector": Unit({"f32": 1e9})},
    model=TILES,
)


@pytest.mark.parametrize("share, expected", [(0, 0), (249, 0), (250, 1), (500, 2), (1000, 3)])
def test_on_chip_memory_is_a_share_of_what_the_machine_has(share, expected):
    assert MEASURES["on_chip"].bin({"on_chip_bytes": share}, CHIP) == expected


@pytest.mark.parametrize("moved, expected", [(100, 0), (124, 0), (125, 1), (399, 2), (400, 3)])
def test_traffic_is_relative_to_the_least_bytes(moved, expected):
    assert MEASURES["traffic"].bin({"moved_bytes": moved, "least_bytes": 100}, CHIP) == expected


@pytest.mark.parametrize("count, expected", [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (99, 3)])
def test_launches_are_counted(count, expected):
    assert MEASURES["launches"].bin({"launches": count}, CHIP) == expected


@pytest.mark.parametrize("tiles, expected", [(3, 0), (4, 1), (8, 2), (32, 3)])
def test_waves_are_tiles_over_what_runs_at_once(tiles, expected):
    assert MEASURES["waves"].bin({"tiles": tiles}, CHIP) == expected


@pytest.mark.parametrize("count, expected", [(0, 0), (99, 0), (100, 1), (800, 2), (6400, 3)])
def test_intensity_is_operations_for_each_byte(count, expected):
    assert MEASURES["intensity"].bin({"operations": count, "moved_bytes": 100}, CHIP) == expected


@pytest.mark.parametrize(
    "figures, expected",
    [
        ({}, "launches and waiting"),
        ({"busy_memory": 0.49, "busy_matrix": 0.3}, "launches and waiting"),
        ({"busy_memory": 0.9, "busy_matrix": 0.3}, "memory"),
        ({"busy_memory": 0.5, "busy_vector": 0.6}, "vector units"),
        ({"busy_memory": 0.5, "busy_vector": 0.6, "busy_matrix": 0.7}, "matrix unit"),
    ],
)
def test_what_is_busy_most_bounds_if_it_is_busy_for_half_of_the_time(figures, expected):
    assert _label("bound", figures) == expected


@pytest.mark.parametrize(
    "figures, expected",
    [
        ({"coalesced": 0.3}, "naive"),
        ({"coalesced": 0.9, "ahead": 1.0}, "coalesced"),
        ({"coalesced": 0.3, "reused": 0.8}, "tiled on chip"),
        ({"coalesced": 1.0, "reused": 0.8, "ahead": 0.6}, "tiled and prefetched"),
    ],
)
def test_memory_is_the_most_that_most_bytes_profit_from(figures, expected):
    assert _label("memory", figures) == expected


@pytest.mark.parametrize(
    "figures, expected",
    [
        ({"passes": 3, "matrix_share": 0.9, "carried": 1}, "in several passes"),
        ({"passes": 1}, "fused"),
        ({"passes": 1, "carried": 2}, "in one pass, tile by tile"),
        ({"passes": 1, "carried": 2, "matrix_share": 0.9}, "on the matrix unit"),
    ],
)
def test_algorithm_is_first_how_often_and_then_how(figures, expected):
    assert _label("algorithm", figures) == expected


@pytest.mark.parametrize(
    "figures, expected",
    [
        ({"barriers": 0, "collectives": 0, "atomics": 0}, "nowhere"),
        ({"barriers": 2}, "at barriers or in memory"),
        ({"atomics": 1}, "at barriers or in memory"),
        ({"collectives": 5}, "in reductions"),
        ({"collectives": 1, "barriers": 1}, "at several levels"),
        ({"atomics": 1, "barriers": 1}, "at several levels"),
    ],
)
def test_synchronisation_is_by_the_sorts_of_meetings(figures, expected):
    assert _label("synchronisation", figures) == expected


def _label(name, figures):
    measure = MEASURES[name]
    return measure.labels[measure.bin(figures, CHIP)]


FIGURES = (
    *("on_chip_bytes", "moved_bytes", "least_bytes", "launches", "tiles", "operations"),
    *("busy_memory", "busy_vector", "busy_matrix", "coalesced", "reused", "ahead", "passes"),
    *("matrix_share", "carried", "barriers", "collectives", "atomics"),
)


@given(st.dictionaries(st.sampled_from(FIGURES), st.floats(0, 1e12)))
def test_whatever_the_figures_there_is_a_labelled_bin(figures):
    for measure in MEASURES.values():
        assert 0 <= measure.bin(figures, CHIP) < len(measure.labels)


def test_borders_ascend_and_every_bin_has_a_label():
    for measure in MEASURES.values():
        assert list(measure.borders) == sorted(measure.borders)
        assert len(measure.labels) >= 4
        assert len(measure.labels) == len(measure.borders) + 1


def test_a_cell_has_a_bin_for_each_measure():
    measures = named(("on_chip", "launches"))
    assert cell(measures, {"on_chip_bytes": 300.0, "launches": 2.0}, CHIP) == (1, 1)


def test_an_unknown_measure_is_refused():
    with pytest.raises(KernelError, match="no measure `taste`"):
        named(("on_chip", "taste"))
