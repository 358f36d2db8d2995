"""Tests that configurations are parsed from text, and that unknown ones are rejected."""

import pytest

from benchmarks.search.configuration import Configuration, configuration, configurations, varied
from ir.errors import KernelError
from search.policy import NAMES


@pytest.mark.parametrize("wording", ["greedy", "islands,count=3~step~mutate", "mcts+memory"])
def test_what_is_printed_is_what_was_read(wording):
    assert str(configuration(wording)) == wording


def test_operators_are_left_out():
    made = configuration("greedy~step~crossover").operators({})
    assert "step" not in made and "crossover" not in made and "mutate" in made


@pytest.mark.parametrize(
    "wording, what",
    [
        ("lucky", "no policy `lucky`"),
        ("greedy~walk", "`walk` of the configuration"),
        ("greedy~stp", "`stp` of the configuration"),
        ("greedy+luck", "`luck` of the configuration"),
    ],
)
def test_what_there_is_not_is_refused(wording, what):
    with pytest.raises(KernelError, match=what) as caught:
        configuration(wording)
    assert caught.value.allowed


def test_groups_stand_for_their_members_once():
    each = [name for name in NAMES if name != "map_elites:uniform"]  # `map_elites` by another name.
    assert [str(c) for c in configurations(["policies", "greedy"])] == each
    found = configurations(["operators:greedy"])
    assert found[0] == Configuration("greedy")
    assert [str(c) for c in found[1:]] == [f"greedy~{name}" for name in varied()]
