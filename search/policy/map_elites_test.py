"""MAP-Elites draws parents among the elites of cells, by each selection."""

import random
from collections import Counter
from dataclasses import replace

import pytest

from search.policy.curiosity import DECAY, GAIN, LEAST, START, curiosity
from search.policy.gradient import gradient, transitions
from search.policy.grid import grid
from search.policy.map_elites import SELECTIONS, MapElites
from search.policy.states import made, names

# Cells are (on_chip, launches): 4 x 4.
FIGURES = {
    "a": {"on_chip_bytes": 0.0, "launches": 1.0},  # (0, 0)
    "b": {"on_chip_bytes": 300.0, "launches": 1.0},  # (1, 0)
    "c": {"on_chip_bytes": 300.0, "launches": 1.0},
    "d": {"on_chip_bytes": 300.0, "launches": 9.0},  # (1, 3)
}
LINES = [
    ("a", 8.0, ""),
    ("b", 4.0, "a"),
    ("c", 6.0, "a"),
    ("d", 9.0, "c"),
    ("e", None, "b"),
]


def state(lines=LINES):
    return made(lines, figures=FIGURES)


def shares(selection, given, count=3000):
    asked = MapElites(selection, crossed=0.0).ask(given, count, random.Random(4))
    drawn = Counter(names(given, [p.parents[0] for p in asked]))
    return {name: n / count for name, n in drawn.items()}


def test_a_cell_is_held_by_the_fastest_and_the_first_of_equals():
    given = made([*LINES, ("f", 4.0, "a")], figures=FIGURES | {"f": FIGURES["b"]})
    found = grid(given)
    held = {h.cell: names(given, [h.key])[0] for h in found.holders}
    assert held == {(0, 0): "a", (1, 0): "b", (1, 3): "d"}
    assert found.shape == (4, 4)
    twins = made([("a", 4.0, ""), ("b", 4.0, "")], figures={})
    assert names(twins, [h.key for h in grid(twins).holders]) == ["a"]


def test_arrivals_tell_the_story_of_the_archive():
    found = grid(state())
    told = {names(state(), [a.key])[0]: (a.entered, a.before > 0) for a in found.arrivals}
    assert told == {
        "a": (True, False),
        "b": (True, False),
        "c": (False, True),
        "d": (True, False),
    }
    assert names(state(), list(found.failed)) == ["e"]


def test_the_holders_are_those_of_the_search_itself():
    given = state()
    assert {(h.cell, h.key) for h in grid(given).holders} == {
        (e.cell, e.candidate.key) for e in given.archive
    }


def test_without_measures_there_is_one_cell():
    found = grid(replace(state(), measures=()))
    assert [(h.cell, names(state(), [h.key])) for h in found.holders] == [((0,), ["b"])]


def test_uniform_draws_each_holder_alike():
    expected = {"a": 1 / 3, "b": 1 / 3, "d": 1 / 3}
    assert shares("uniform", state()) == pytest.approx(expected, abs=0.04)


def test_fitness_draws_the_fitter_more_often():
    # of four correct ones, b has rank 1, a 1/2, d 1/4
    whole = 1 + 1 / 2 + 1 / 4
    expected = {"b": 1 / whole, "a": 1 / 2 / whole, "d": 1 / 4 / whole}
    assert shares("fitness", state()) == pytest.approx(expected, abs=0.04)


def test_curiosity_is_raised_by_children_that_enter_and_decays_by_others():
    given = state()
    found = grid(given)
    weights = curiosity(given, found)
    # a's children: b entered, c did not.  b's and c's are of one cell: e failed, d entered.
    assert weights[0, 0] == pytest.approx((START + GAIN) * DECAY)
    assert weights[1, 0] == pytest.approx((START + GAIN) * DECAY)
    assert weights[1, 3] == START


def test_curiosity_never_gives_a_cell_up():
    lines = [("a", 1.0, ""), *((f"x{n}", None, "a") for n in range(60))]
    given = state(lines)
    assert curiosity(given, grid(given)) == {(0, 0): LEAST}


def test_a_gradient_points_where_children_got_fitter_and_entered():
    given = state()
    found = grid(given)
    history = transitions(given, found)
    assert [(t.start, t.end, t.entered) for t in history] == [
        ((0, 0), (1, 0), True),
        ((0, 0), (1, 0), False),
        ((1, 0), (1, 3), True),
    ]
    on_chip, launches = gradient((0, 0), found, history)
    assert on_chip > 0.3  # both upward steps gained, one entered
    # only the cells above are empty
    assert gradient((0, 0), found, [])[0] == pytest.approx(0.2 * 2 / 3)


def test_later_and_nearer_transitions_count_more():
    lines = [("a", 8.0, ""), ("b", 4.0, "a"), ("c", 9.0, "a"), ("d", 10.0, "a")]
    given = made(lines, figures=FIGURES | {"c": FIGURES["b"], "d": FIGURES["d"]})
    found = grid(given)
    history = transitions(given, found)
    forward = gradient((0, 0), found, history)[0]
    backward = gradient((0, 0), found, history[::-1])[0]
    assert forward < backward  # the only gain was the earliest
    far = gradient((3, 3), found, history)
    assert far != gradient((0, 0), found, history)


def test_a_hint_names_the_measure_and_the_way():
    given = state()
    asked = MapElites("gradient", crossed=0.0).ask(given, 60, random.Random(0))
    hints = {names(given, p.parents)[0]: p.hint for p in asked}
    assert hints["a"] == "move towards more on_chip: on-chip memory used is `to 25%`, try `to 50%`"
    asked = MapElites("uniform").ask(given, 20, random.Random(0))
    assert {p.hint for p in asked} == {""}


def test_two_parents_hold_different_cells():
    asked = MapElites(crossed=1.0).ask(state(), 60, random.Random(0))
    assert all(len(set(p.parents)) == 2 for p in asked)


@pytest.mark.parametrize("selection", SELECTIONS)
def test_while_nothing_is_correct_roots_are_drawn(selection):
    given = state([("a", None, ""), ("b", 0, "")])
    asked = MapElites(selection).ask(given, 30, random.Random(0))
    assert {names(given, p.parents)[0] for p in asked} == {"a", "b"}


def test_an_unknown_selection_is_a_fault_of_ours():
    with pytest.raises(AssertionError, match="no selection `taste`"):
        MapElites("taste")
