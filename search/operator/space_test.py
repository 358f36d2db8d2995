"""The space of a sweep has the neighbours of a schedule and all seen values."""

import random

import pytest

from ir.autoschedule.autoschedule import autoschedule, plain
from ir.edits.edits import difference, neighbours
from ir.parse.parse import parse_schedule, parse_spec
from ir.schedule import Decision
from search.core.testing import CHIP, SIZES
from search.operator.space import SearchSpace, Tunable

SPEC = parse_spec(
    '''def product(a: f32[M, K], b: f32[K, N]) -> f32[M, N]:
    """Multiply."""
    y[m, n] = sum(a[m, k] * b[k, n], k)
    return y
'''
)
BASE = autoschedule(SPEC, CHIP, SIZES)


def space(*seen):
    return SearchSpace.of(SPEC, BASE, CHIP, SIZES, seen)


def test_every_single_change_is_a_setting():
    around = space()
    reached = set()
    for name, parameter in around.parameters.items():
        reached |= {str(around.schedule({name: n})) for n in range(len(parameter.values))}
    assert reached == {str(BASE)} | {
        str(e.apply(BASE)) for e in neighbours(SPEC, BASE, CHIP, SIZES)
    }


def test_a_schedule_that_was_seen_has_a_setting_that_makes_it():
    other = plain(SPEC, CHIP, SIZES)
    around = space(other)
    assert around.schedule(around.setting(other)) == other
    assert around.schedule(around.setting(BASE)) == BASE


@pytest.mark.parametrize("seed", range(20))
def test_a_walk_of_changes_is_a_setting(seed):
    rng = random.Random(seed)
    there = BASE
    for _ in range(4):
        there = rng.choice(neighbours(SPEC, there, CHIP, SIZES)).apply(there)
    around = space(there)
    made = around.schedule(around.setting(there))
    assert difference(made, there) == ()
    assert made.of("place")[:1] == there.of("place")[:1]


def test_sizes_are_ordinal_and_a_whole_index_is_the_largest_tile():
    tile = space(plain(SPEC, CHIP, SIZES)).parameters["tile(m)"]
    sizes = [v and v.option("size") for v in tile.values]
    assert sizes == [1, 2, 4, 6, 8, 16, 32, 64, None]  # 6: three tiles on each processor
    assert tile.ordinal


def test_words_are_not_ordinal():
    values = tuple(Decision("compute", "y", (("unit", u),)) for u in ("matrix", "vector"))
    assert not Tunable("compute", "y", values).ordinal
    both = (
        Decision("pack", "a", (("order", "k_m"), ("dtype", "tf32"))),
        Decision("pack", "a", (("order", "k_m"),)),
    )
    assert not Tunable("pack", "a", both).ordinal


def test_a_number_that_only_some_values_have_is_not_ordinal():
    whole = Decision("epilogue", "y", (("by", "shared"),))
    parts = Decision("epilogue", "y", (("by", "shared"), ("columns", 64)))
    assert not Tunable("epilogue", "y", (whole, parts)).ordinal


def test_a_loop_comes_first():
    base = parse_schedule(
        "schedule(product)\ntile(m, size=8)\ntile(n, size=8)\nplace(m.outer, level=grid)\n"
        "place(n.outer, level=grid)\n"
    )
    around = SearchSpace.of(SPEC, base, CHIP, SIZES)
    first = around.parameters["first()"]
    number = first.values.index(Decision("first", "n.outer"))
    transposed = around.schedule({"first()": number})
    assert [d.subject for d in transposed.of("place")] == ["n.outer", "m.outer"]


def test_a_schedule_that_places_nothing_has_a_space_too():
    bare = parse_schedule("schedule(product)\n")
    around = SearchSpace.of(SPEC, bare, CHIP, SIZES)
    assert "first()" not in around.parameters
    assert around.schedule(around.setting(bare)) == bare
