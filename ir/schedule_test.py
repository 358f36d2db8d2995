"""Schedules as values and as text."""

from ir.parse.schedule import parse_schedule
from ir.schedule import Decision, Schedule

TEXT = """schedule(softmax)
tile(m, size=4)
place(m.outer, level=grid)
load(x, at=grid)
pipeline(x, stages=2)
"""


def test_a_schedule_prints_as_it_was_written():
    assert str(parse_schedule(TEXT)) == TEXT


def test_a_schedule_without_decisions_is_its_first_line():
    assert str(Schedule("softmax")) == "schedule(softmax)\n"


def test_where_a_decision_was_written_is_not_compared():
    moved = parse_schedule(TEXT.replace("tile", "\n\ntile"))
    assert moved == parse_schedule(TEXT)
    assert moved.decisions[0].place != parse_schedule(TEXT).decisions[0].place


def test_decisions_are_found_by_verb_and_the_last_one_by_verb_and_subject():
    one, two = Decision("tile", "m", (("size", 1),)), Decision("tile", "m", (("size", 2),))
    other = Decision("tile", "k", (("size", 3),))
    schedule = Schedule("f", (one, other, two))
    assert schedule.of("tile") == (one, other, two)
    assert schedule.of("place") == ()
    assert schedule.find("tile", "m") == two
    assert schedule.find("place", "m") is None


def test_an_option_that_is_not_given_is_the_default():
    decision = Decision("precision", "y", (("dtype", "bf16"),))
    assert (decision.option("dtype", "f32"), decision.option("acc")) == ("bf16", None)
    assert decision.option("acc", "f32") == "f32"
