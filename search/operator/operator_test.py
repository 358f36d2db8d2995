"""Operators make new children that lower, the same for the same generator."""

import random

import pytest

from ir.autoschedule.autoschedule import autoschedule, plain
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule, parse_spec
from ir.print import spec_text
from ir.schedule import Decision, Schedule
from search.core.candidate import Candidate
from search.core.graph import Graph
from search.core.testing import CHIP, SIZES, SPEC
from search.loop.context import Context, GaveUp, Parent, nest_digest
from search.operator import local_operators
from search.operator.crossover import Crossover, mix
from search.operator.mutate import Mutate

OPERATORS = local_operators()


def candidate(schedule):
    return Candidate(spec_text(SPEC), str(schedule), "chip", "tongue")


FIRST = candidate(autoschedule(SPEC, CHIP, SIZES))
PLAIN = candidate(plain(SPEC, CHIP, SIZES))


def context(*parents, graph=None):
    if graph is None:
        graph = Graph()
        for p in parents:
            graph.add(p, nest_digest(p, CHIP, SIZES))
    return Context(SPEC, CHIP, SIZES, tuple(Parent(p) for p in parents), graph)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("seed", range(8))
def test_a_child_is_new_and_lowers(name, seed):
    here = context(FIRST, PLAIN)
    child = OPERATORS[name].propose(here, random.Random(seed))
    if isinstance(child, GaveUp):
        # There is no other backend to port from.
        assert name in ("crossover", "port") and child.reason
        return
    assert child.key not in here.graph
    assert child.origin.operator == name
    assert child.origin.parents[0] == FIRST.key
    assert child.origin.note
    lower(parse_spec(child.variant), parse_schedule(child.schedule), CHIP, SIZES)


@pytest.mark.parametrize("name", OPERATORS)
def test_the_same_generator_makes_the_same_child(name):
    made = [OPERATORS[name].propose(context(FIRST, PLAIN), random.Random(7)) for _ in range(2)]
    assert made[0] == made[1]


def test_a_step_is_one_change():
    child = OPERATORS["step"].propose(context(FIRST), random.Random(1))
    before = set(parse_schedule(FIRST.schedule).decisions)
    after = set(parse_schedule(child.schedule).decisions)
    verbs = {(d.verb, d.subject) for d in before ^ after}
    tiled = {subject for verb, subject in verbs if verb == "tile"}
    # Dropping a tile also drops the decisions on its loop.
    assert len({s.removesuffix(".outer") for _, s in verbs} - tiled) <= 1


def test_mutate_goes_through_all_neighbours_and_then_says_that_it_is_done():
    here = context(FIRST)
    operator = Mutate("step", most=1, tries=2)
    rng = random.Random(0)
    seen = set()
    while isinstance(child := operator.propose(here, rng), Candidate):
        assert child.key not in seen
        seen.add(child.key)
        here.graph.add(child, nest_digest(child, CHIP, SIZES))
        assert len(seen) < 500
    assert len(seen) > 10
    assert "neighbours of the schedule were tried" in child.reason


def test_another_wording_of_a_tried_schedule_is_not_offered():
    here = context(FIRST)
    decisions = parse_schedule(FIRST.schedule).decisions
    transposed = sorted(decisions, key=lambda d: d.verb, reverse=True)
    found = here.offer(Schedule("scaled_matmul", tuple(transposed)), "given", "")
    assert found == GaveUp("it was tried before")
    useless = Decision("precision", "acc", (("dtype", "f32"),))
    found = here.offer(Schedule("scaled_matmul", (*decisions, useless)), "given", "")
    assert found == GaveUp("another schedule comes to the same")


def test_what_does_not_lower_is_given_up_with_the_reason():
    wrong = Schedule("scaled_matmul", (Decision("tile", "q", (("size", 4),)),))
    assert "`q`" in context(FIRST).offer(wrong, "given", "").reason


ONE = Schedule("k", (Decision("a", "x"), Decision("b", "x", (("n", 1),)), Decision("d", "x")))
TWO = Schedule("k", (Decision("b", "x", (("n", 2),)), Decision("c", "x"), Decision("d", "x")))


@pytest.mark.parametrize(
    "taken, expected",
    [
        ((), "a(x) b(x, n=1) d(x)"),
        ((("b", "x", 0),), "a(x) b(x, n=2) d(x)"),
        ((("c", "x", 0),), "a(x) b(x, n=1) c(x) d(x)"),
        ((("a", "x", 0),), "b(x, n=1) d(x)"),
        ((("a", "x", 0), ("b", "x", 0), ("c", "x", 0)), "b(x, n=2) c(x) d(x)"),
    ],
)
def test_mixing_takes_each_decision_from_one_of_two(taken, expected):
    assert " ".join(str(d) for d in mix(ONE, TWO, frozenset(taken)).decisions) == expected


def test_twins_have_no_child():
    assert "fewer than two" in Crossover().propose(context(FIRST, FIRST), random.Random(0)).reason
