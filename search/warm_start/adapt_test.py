"""Adaptation keeps the decisions of a schedule that lower, and leaves out the others."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from ir.autoschedule.autoschedule import autoschedule
from ir.edits.edits import neighbours
from ir.lower.lower import lower
from ir.machine import Space
from ir.schedule import Decision, Schedule
from search.core.testing import CHIP, SIZES, SPEC
from search.warm_start.adapt import adapted

FIRST = autoschedule(SPEC, CHIP, SIZES)
SMALL = replace(CHIP, spaces={**CHIP.spaces, "local": Space(3 << 10)})


def test_what_lowers_stays_as_it_is():
    assert adapted(SPEC, FIRST, CHIP, SIZES) is FIRST


def test_one_decision_that_cannot_be_is_left_out_and_the_others_stay():
    odd = Decision("tile", "nobody", (("size", 4),))
    tile = FIRST.find("tile", "m")
    other = Decision("tile", "m", (("size", 8),))
    assert tile != other
    kept = tuple(other if d == tile else d for d in FIRST.decisions)
    found = adapted(SPEC, Schedule(FIRST.kernel, (*kept, odd)), CHIP, SIZES)
    assert other in found.decisions and odd not in found.decisions
    lower(SPEC, found, CHIP, SIZES)


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_any_schedule_is_adapted_to_a_smaller_machine(data):
    schedule = FIRST
    for _ in range(data.draw(st.integers(1, 4))):
        edits = neighbours(SPEC, schedule, CHIP, SIZES)
        schedule = data.draw(st.sampled_from(edits)).apply(schedule)
    lower(SPEC, adapted(SPEC, schedule, SMALL, SIZES), SMALL, SIZES)
