"""Measures place a candidate by the figures of its evaluation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir.errors import KernelError
from ir.machine import Machine, Space, Unit
from search.measures import MEASURES, cell, named

CHIP = Machine(
    name="chip",
    title="A chip",
    backends=("tongue",),
    levels={"grid": 4},
    spaces={"global": Space(1 << 30, 1e9), "scratch": Space(1000)},
    units={"vector": Unit({"f32": 1e9})},
)


@pytest.mark.parametrize("share, expected", [(0, 0), (249, 0), (250, 1), (500, 2), (1000, 3)])
def test_scratch_is_a_share_of_what_the_machine_has(share, expected):
    assert MEASURES["scratch"].bin({"scratch_bytes": share}, CHIP) == expected


@pytest.mark.parametrize("moved, expected", [(100, 0), (124, 0), (125, 1), (399, 2), (400, 3)])
def test_traffic_is_relative_to_the_least_bytes(moved, expected):
    assert MEASURES["traffic"].bin({"moved_bytes": moved, "least_bytes": 100}, CHIP) == expected


@pytest.mark.parametrize("count, expected", [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (99, 3)])
def test_launches_are_counted(count, expected):
    assert MEASURES["launches"].bin({"launches": count}, CHIP) == expected


@pytest.mark.parametrize("tiles, expected", [(3, 0), (4, 1), (8, 2), (32, 3)])
def test_waves_are_tiles_over_what_runs_at_once(tiles, expected):
    assert MEASURES["waves"].bin({"tiles": tiles}, CHIP) == expected


@given(
    st.dictionaries(
        st.sampled_from(["scratch_bytes", "moved_bytes", "least_bytes", "launches", "tiles"]),
        st.floats(0, 1e12),
    )
)
def test_whatever_the_figures_there_is_a_labelled_bin(figures):
    for measure in MEASURES.values():
        assert 0 <= measure.bin(figures, CHIP) < len(measure.labels)


def test_borders_ascend_and_every_bin_has_a_label():
    for measure in MEASURES.values():
        assert list(measure.borders) == sorted(measure.borders)
        assert len(measure.labels) == len(measure.borders) + 1


def test_a_cell_has_a_bin_for_each_measure():
    measures = named(("scratch", "launches"))
    assert cell(measures, {"scratch_bytes": 300.0, "launches": 2.0}, CHIP) == (1, 1)


def test_an_unknown_measure_is_refused():
    with pytest.raises(KernelError, match="no measure `taste`"):
        named(("scratch", "taste"))
