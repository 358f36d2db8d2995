"""What was changed without an effect is known to have none; a device shows that of nothing."""

from dataclasses import replace

import pytest

from ir.parse.parse import parse_schedule
from search.core.candidate import Candidate, Origin
from search.core.evaluation import Evaluation, Failure
from search.core.graph import Graph
from search.loop.idle import changed, effects

ROOT = ("tile(m, size=8)", "pipeline(x, stages=2)", "cache(w, hint=evict_first)")


def candidate(*decisions, parent=None, **more):
    text = "\n".join(("schedule(k)", *decisions, ""))
    origin = Origin("step", (parent.key,) if parent else ())
    return Candidate("spec", text, "chip", "tongue", origin=origin, **more)


def schedule(*decisions):
    return parse_schedule(candidate(*decisions).schedule)


def timed(us, kind="modelled"):
    return Evaluation(us, kind, "interpreter")


FIRST = candidate(*ROOT)
STAGES = candidate(ROOT[0], "pipeline(x, stages=3)", ROOT[2], parent=FIRST)
TILE = candidate("tile(m, size=16)", *ROOT[1:], parent=FIRST)
BOTH = candidate("tile(m, size=16)", "pipeline(x, stages=4)", ROOT[2], parent=FIRST)
PIPELINE, M = ("pipeline", "x"), ("tile", "m")


def found(outcomes, unnoticed=lambda before, after: False):
    graph = Graph()
    for each in (FIRST, *outcomes):
        graph.add(each)
    known = {c.key: o for c, o in {FIRST: timed(8.0), **outcomes}.items()}
    return effects(graph, known, unnoticed)


def test_nothing_that_the_estimate_sees_is_idle_before_it_was_tried():
    assert not found({}).are_idle([PIPELINE], unnoticed=False)


def test_a_change_that_left_the_time_as_it_was_is_idle_the_next_time():
    known = found({STAGES: timed(8.0), TILE: timed(9.0)})
    assert known.are_idle([PIPELINE], unnoticed=False)
    assert not known.are_idle([M], unnoticed=False)
    assert not known.are_idle([PIPELINE, M], unnoticed=False)


def test_of_a_verb_that_did_nothing_twice_other_subjects_are_idle_too():
    once = found({STAGES: timed(8.0)})
    assert not once.are_idle([("pipeline", "w")], unnoticed=False)
    again = candidate(ROOT[0], "pipeline(x, stages=4)", ROOT[2], parent=FIRST)
    assert found({STAGES: timed(8.0), again: timed(8.0)}).are_idle([("pipeline", "w")], False)


def test_an_effect_makes_a_sort_worth_trying_again():
    again = candidate(ROOT[0], "pipeline(x, stages=4)", ROOT[2], parent=FIRST)
    assert not found({STAGES: timed(8.0), again: timed(7.0)}).are_idle([PIPELINE], unnoticed=False)


def test_of_changes_together_each_has_a_share_of_the_effect():
    known = found({BOTH: timed(7.0)})
    assert known.live[PIPELINE] == known.live[M] == 0.5 and not known.idle


@pytest.mark.parametrize(("kind", "idle"), [("modelled", True), ("measured", False)])
def test_what_the_estimate_does_not_see_is_idle_at_once_where_times_are_computed(kind, idle):
    graph = Graph()
    graph.add(FIRST)
    known = effects(graph, {FIRST.key: timed(8.0, kind)}, lambda before, after: True)
    assert known.are_idle([PIPELINE], unnoticed=True) == idle
    assert not known.are_idle([PIPELINE], unnoticed=False)


def test_an_unnoticed_change_with_an_effect_makes_others_worth_trying():
    known = found({TILE: timed(7.0)}, unnoticed=lambda before, after: True)
    assert not known.are_idle([PIPELINE], unnoticed=True)


def test_failures_other_equations_and_edited_sources_show_nothing():
    other = replace(STAGES, variant="another")
    edited = replace(STAGES, source="text")
    failed = Failure("check", "wrong", "it is off")
    for one, outcome in ((STAGES, failed), (other, timed(8.0)), (edited, timed(8.0))):
        known = found({one: outcome})
        assert not known.live and not known.idle


def test_the_sorts_of_a_change_are_those_of_all_that_differs():
    before = schedule(*ROOT)
    assert changed(before, schedule(*ROOT[:2])) == {("cache", "w")}
    assert changed(before, schedule(*ROOT, "unroll_loop(k)")) == {("unroll_loop", "k")}
    assert changed(before, schedule(ROOT[1], ROOT[0], ROOT[2])) == {PIPELINE, M}
    assert changed(before, before) == frozenset()
