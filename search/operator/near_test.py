"""Near makes a few small moves from a parent; those that are expected to be fast come first."""

import math
import random

import pytest

from ir.autoschedule.autoschedule import autoschedule
from ir.parse.parse import parse_schedule
from ir.print import spec_text
from ir.schedule import Decision
from search.core.candidate import Candidate
from search.core.evaluation import Evaluation, Failure
from search.core.graph import Graph
from search.core.testing import CHIP, SIZES, SPEC
from search.loop.context import Context, GaveUp, Parent
from search.operator import local_operators, near
from search.operator.near import Near
from search.operator.space import SearchSpace, Tunable

FIRST = Candidate(spec_text(SPEC), str(autoschedule(SPEC, CHIP, SIZES)), "chip", "tongue")
SPACE = SearchSpace.of(SPEC, parse_schedule(FIRST.schedule), CHIP, SIZES)
TILE = "tile(m)"


def context(*told):
    """A context whose parent is the first, with 10 us, and other outcomes: schedules and their
    us."""
    graph, outcomes = Graph(), {FIRST.key: Evaluation(10.0, "measured", "device")}
    graph.add(FIRST)
    for schedule, us in told:
        child = Candidate(FIRST.variant, str(schedule), "chip", "tongue")
        graph.add(child)
        wrong = Failure("build", "refused", "no")
        outcomes[child.key] = wrong if us is None else Evaluation(us, "measured", "device")
    return Context(SPEC, CHIP, SIZES, (Parent(FIRST, outcomes[FIRST.key]),), graph, outcomes)


def moves(child):
    """By decision: how many values a child's is away from the first's."""
    start = SPACE.setting(SPACE.base)
    now = SPACE.setting(parse_schedule(child.schedule))
    return {n: now[n] - start[n] for n in now if now[n] != start[n]}


@pytest.mark.parametrize("seed", range(12))
def test_a_child_is_new_and_a_few_steps_away(seed):
    made = context()
    child = Near().propose(made, random.Random(seed))
    assert isinstance(child, Candidate) and child.key != FIRST.key
    found = moves(child)
    assert 1 <= len(found) <= 4
    assert all(abs(by) <= 2 for n, by in found.items() if SPACE.parameters[n].ordinal)
    assert child == Near().propose(made, random.Random(seed))  # the same each time


@pytest.mark.parametrize("way", [1, -1])
def test_what_made_kernels_faster_is_made_more_often(way):
    start = SPACE.setting(SPACE.base)[TILE]
    told = [
        (SPACE.schedule({TILE: start + by}), 10.0 * math.exp(-0.2 * way * by)) for by in (-2, -1, 1)
    ]
    found = [Near().propose(context(*told), random.Random(seed)) for seed in range(40)]
    moved = [moves(child).get(TILE, 0) for child in found if isinstance(child, Candidate)]
    there, back = (sum(by * to > 0 for by in moved) for to in (way, -way))
    assert there > 3 * back


def test_a_failure_counts_as_slow():
    known = list(near._told(context((SPACE.schedule({TILE: 0}), None))))
    assert sorted(y for _, y in known) == [0.0, near.LOST]


def test_what_the_forecast_takes_for_hopeless_is_left_out(monkeypatch):
    monkeypatch.setattr(
        Context, "expected_us", lambda self, c: 10.0 if c.key == FIRST.key else 15.1
    )
    assert isinstance(Near().propose(context(), random.Random(1)), GaveUp)
    monkeypatch.setattr(
        Context, "expected_us", lambda self, c: 10.0 if c.key == FIRST.key else 14.9
    )
    assert isinstance(Near().propose(context(), random.Random(1)), Candidate)


def split(over, parts):
    return Decision("split_k", "t", (("over", over), ("parts", parts)))


def test_a_decision_of_several_words_moves_along_its_number_for_the_most_part():
    values = (None, *(split(over, n) for n in (2, 256, 512, 1024, 2048) for over in "ij"))
    found = Tunable("split_k", "t", values)
    assert not found.ordinal
    at = values.index(split("i", 512))
    counts = dict.fromkeys(range(len(values)), 0)
    rng = random.Random(3)
    for _ in range(1000):
        counts[near._moved(found, at, rng)] += 1
    assert counts[at] == 0
    close = sum(counts[values.index(split("i", n))] for n in (2, 256, 1024, 2048))
    assert 700 < close < 900  # otherwise anywhere
    assert counts[values.index(split("i", 256))] > 2 * counts[values.index(split("i", 2))]


def test_it_is_asked_by_name_only():
    assert local_operators()["near"].by_name
