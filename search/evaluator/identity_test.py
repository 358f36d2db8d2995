"""Candidates have the same identity if and only if their programs are the same."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from backends.served import Served
from ir.autoschedule.autoschedule import autoschedule
from ir.digest import text_digest
from ir.edits.edits import neighbours
from search.core.candidate import Candidate
from search.core.testing import CHIP, SETTINGS, SIZES, SPEC
from search.core.workload import WeightedShape
from search.evaluator.identity import SourceIdentity

FIRST = autoschedule(SPEC, CHIP, SIZES)


def named(nest, machine):
    """A source that names its schedule, but not its decisions."""
    return f"of schedule {text_digest(str(nest.schedule))}\n"


def whole(nest, machine):
    return named(nest, machine) + repr(nest.launches)


def candidate(schedule):
    return Candidate(SETTINGS.spec, str(schedule), "chip", "tongue")


def identity(emit, shapes=(WeightedShape(SIZES),)):
    served = Served(SimpleNamespace(emit=emit), CHIP)
    return SourceIdentity(dict.fromkeys(("tongue", "dialect"), served), shapes)


def others():
    edits = neighbours(SPEC, FIRST, CHIP, SIZES)
    return [candidate(edit.apply(FIRST)) for edit in edits]


def test_the_schedule_that_a_source_names_is_no_difference():
    same = identity(named)
    found = {same(other) for other in others()} - {""}
    assert same(candidate(FIRST)) in found
    # Other differences are in grids and in tensors between launches, which the host takes from the
    # nest.
    assert 1 < len(found) < len([o for o in others() if same(o)])


def test_another_text_is_another_program():
    differ = identity(whole)
    apart = identity(lambda nest, machine: repr(nest.launches))
    for other in others():
        assert (differ(other) == differ(candidate(FIRST))) == (
            apart(other) == apart(candidate(FIRST))
        )


def test_another_backend_is_another_program():
    same = identity(named)
    other = replace(candidate(FIRST), backend="dialect")
    assert same(other) and same(other) != same(candidate(FIRST))


@pytest.mark.parametrize("fault", [ValueError("a bug"), KeyError("another")])
def test_what_cannot_be_emitted_has_none(fault):
    def fails(nest, machine):
        raise fault

    assert identity(fails)(candidate(FIRST)) == ""
    assert identity(named)(candidate(FIRST)) != ""


def test_an_edited_source_and_a_schedule_that_does_not_fit_have_none():
    assert identity(named)(replace(candidate(FIRST), source="by hand")) == ""
    assert identity(named)(replace(candidate(FIRST), schedule="schedule(other)\n")) == ""


def test_it_must_lower_at_every_shape():
    lacking = WeightedShape({"M": 8})
    assert identity(named, (WeightedShape(SIZES), WeightedShape({**SIZES, "M": 128})))(
        candidate(FIRST)
    )
    assert identity(named, (WeightedShape(SIZES), lacking))(candidate(FIRST)) == ""
