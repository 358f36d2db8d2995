"""A context's expected time of a candidate follows the outcomes of others."""

from dataclasses import replace

import pytest

from ir.autoschedule.autoschedule import autoschedule, plain
from ir.estimate.estimate import estimate
from ir.lower.lower import lower
from ir.print import spec_text
from search.core.candidate import Candidate, Origin
from search.core.evaluation import Evaluation, Failure
from search.core.graph import Graph
from search.core.testing import CHIP, SIZES, SPEC
from search.loop.context import Context, Parent

SCHEDULES = [made(SPEC, CHIP, SIZES) for made in (autoschedule, plain)]
FIRST, PLAIN = (Candidate(spec_text(SPEC), str(s), "chip", "tongue") for s in SCHEDULES)
ESTIMATE = estimate(lower(SPEC, SCHEDULES[0], CHIP, SIZES), CHIP, SIZES)


def context(**told):
    graph = Graph()
    outcomes = {}
    for candidate, outcome in ((FIRST, told.get("first")), (PLAIN, told.get("plain"))):
        graph.add(candidate)
        if outcome is not None:
            outcomes[candidate.key] = outcome
    return Context(SPEC, CHIP, SIZES, (Parent(FIRST),), graph, outcomes)


def time(us):
    return Evaluation(us, "modelled", "emulator")


def test_before_anything_is_told_the_estimate_stands():
    assert context().expected_us(FIRST) == pytest.approx(ESTIMATE)
    failed = Failure("check", "wrong", "")
    assert context(first=failed).expected_us(FIRST) == pytest.approx(ESTIMATE)


def test_what_was_told_corrects_the_estimate_of_its_like():
    assert context(first=time(3 * ESTIMATE)).expected_us(FIRST) == pytest.approx(3 * ESTIMATE)
    mixed = context(first=time(3 * ESTIMATE), plain=time(ESTIMATE / 1e3))
    assert mixed.expected_us(FIRST) > ESTIMATE / 10 > mixed.expected_us(PLAIN) / 1e3


def test_a_source_of_its_own_is_not_what_the_estimate_is_of():
    edited = Candidate(FIRST.variant, FIRST.schedule, "chip", "tongue", source="edited")
    here = context()
    here.graph.add(edited)
    told = Context(SPEC, CHIP, SIZES, (), here.graph, {edited.key: time(1e-3)})
    assert told.expected_us(FIRST) == pytest.approx(ESTIMATE)


def test_what_was_edited_freely_gives_way_to_what_it_was_edited_from():
    def edit(parent, source):
        origin = Origin("universal", (parent.key,))
        return Candidate(FIRST.variant, FIRST.schedule, "chip", "tongue", source, origin)

    once = edit(FIRST, "edited")
    twice = edit(once, "edited again")
    alone = Candidate(PLAIN.variant, PLAIN.schedule, "chip", "tongue", source="brought")
    given = context(first=time(5.0))
    for candidate in (once, twice, alone):
        given.graph.add(candidate)
    parents = tuple(Parent(c, time(1.0)) for c in (twice, PLAIN, alone))
    found = replace(given, parents=parents).unedited()
    assert found.parents == (Parent(FIRST, time(5.0)), *parents[1:])
