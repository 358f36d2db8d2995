"""First candidates: by rule, plain, given, and brought from other searches."""

from dataclasses import replace

from ir.autoschedule.autoschedule import autoschedule
from ir.edits.edits import Edit
from ir.lower.lower import lower
from ir.machine import Space
from ir.parse.parse import parse_schedule, parse_spec
from ir.print import spec_text
from ir.schedule import Decision
from search.core.testing import CHIP, SETTINGS, SIZES, SPEC
from search.core.transferred import Transferred
from search.warm_start.first import BROUGHT, FIRST, GIVEN, PLAIN, first_candidates

TILE = Decision("tile", "m", (("size", 8),))
RULE = autoschedule(SPEC, CHIP, SIZES)
FOUND = str(Edit(RULE.find("tile", "m"), TILE).apply(RULE))


def transferred(**changed):
    here = Transferred("other", "dialect", SETTINGS.spec, FOUND, 3.0, "measured", "other-1", "code")
    return replace(here, **changed)


def operators(*found, machine=CHIP):
    settings = replace(SETTINGS, transferred=found)
    return [(c.origin.operator, c) for c in first_candidates(settings, SPEC, machine)]


def test_the_rule_the_plain_one_and_what_the_user_gave():
    given = replace(SETTINGS, schedule=FOUND)
    names = [c.origin.operator for c in first_candidates(given, SPEC, CHIP)]
    assert names == [FIRST, PLAIN, GIVEN]


def test_what_another_machine_found_is_brought_as_far_as_it_lowers():
    name, brought = operators(transferred())[-1]
    assert (name, brought.target, brought.backend) == (BROUGHT, "chip", "tongue")
    assert brought.schedule == FOUND and brought.source is None
    assert "other" in brought.origin.note
    small = replace(CHIP, spaces={**CHIP.spaces, "local": Space(1 << 12)})
    name, brought = operators(transferred(), machine=small)[-1]
    lower(SPEC, parse_schedule(brought.schedule), small, SIZES)


def test_a_source_comes_along_only_to_its_own_backend_and_where_it_was_edited():
    here = transferred(target="chip", backend="tongue")
    assert operators(here)[-1][1].source is None
    assert operators(replace(here, edited=True))[-1][1].source == "code"
    assert operators(transferred(edited=True))[-1][1].source is None


def test_what_is_the_same_is_there_once():
    assert [name for name, _ in operators(transferred(schedule=str(RULE)))] == [FIRST, PLAIN]


def test_what_does_not_fit_is_left_out():
    text = 'def other(a: f32[M]) -> f32[M]:\n    """Doc."""\n    y[m] = a[m]\n    return y\n'
    other = spec_text(parse_spec(text))
    for found in (
        transferred(schedule="schedule(scaled_matmul)\nreduction(m)\n"),
        transferred(variant="def"),
        transferred(variant=other),
    ):
        assert [name for name, _ in operators(found)] == [FIRST, PLAIN]
