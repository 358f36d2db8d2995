"""A port is the other backend's kernel, with the decisions that this backend supports."""

import random
from dataclasses import replace

from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from ir.machine import Rendering
from ir.parse.parse import parse_schedule
from ir.print import spec_text
from search.core.candidate import Candidate
from search.core.graph import Graph
from search.core.testing import CHIP, SIZES, SPEC
from search.loop.context import Context, GaveUp, Parent, nest_digest
from search.operator import local_operators
from search.operator.port import Port

THERE = Candidate(spec_text(SPEC), str(autoschedule(SPEC, CHIP, SIZES)), "chip", "tongue")
BARE = replace(CHIP, rendering=Rendering("dialect", ()))


def context(*others, machine=BARE):
    graph = Graph()
    for c in (THERE, *others):
        graph.add(c, nest_digest(c, machine if c is not THERE else CHIP, SIZES))
    return Context(SPEC, machine, SIZES, (Parent(THERE),), graph, backend="dialect")


def test_decisions_that_the_backend_does_not_render_are_left_out():
    assert "pipeline" in THERE.schedule
    child = Port().propose(context(), random.Random(1))
    assert (child.backend, child.origin.operator) == ("dialect", "port")
    assert child.origin.parents == (THERE.key,)
    assert child.origin.note == "brought over from tongue"
    assert "pipeline" not in child.schedule and "tile(m" in child.schedule
    lower(SPEC, parse_schedule(child.schedule), BARE, SIZES)


def test_a_schedule_that_it_renders_is_the_same_and_yet_new():
    child = Port().propose(context(machine=CHIP), random.Random(1))
    assert child.schedule == THERE.schedule and child.key != THERE.key


def test_what_the_backend_has_tried_is_not_tried_again():
    first = Port().propose(context(), random.Random(1))
    assert isinstance(Port().propose(context(first), random.Random(1)), GaveUp)


def test_it_is_one_of_the_operators_and_is_asked_by_name_only():
    assert local_operators()["port"].by_name
