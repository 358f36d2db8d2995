"""First candidates: autoscheduled, plain, the user's, and from other searches."""

from dataclasses import replace

import pytest

from ir.autoschedule.autoschedule import autoschedule
from ir.edits.edits import Edit
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.machine import Rendering, Space
from ir.parse.parse import parse_schedule, parse_spec
from ir.print import spec_text
from ir.schedule import Decision
from search.core.testing import CHIP, SETTINGS, SIZES, SPEC
from search.core.transferred import Transferred
from search.warm_start import first
from search.warm_start.first import (
    BROUGHT,
    FIRST,
    GIVEN,
    PLAIN,
    first_candidates,
    require_lowered,
)

TILE = Decision("tile", "m", (("size", 8),))
RULE = autoschedule(SPEC, CHIP, SIZES)
FOUND = str(Edit(RULE.find("tile", "m"), TILE).apply(RULE))


def transferred(**changed):
    here = Transferred("other", "dialect", SETTINGS.spec, FOUND, 3.0, "measured", "other-1", "code")
    return replace(here, **changed)


def operators(*found, machine=CHIP):
    settings = replace(SETTINGS, transferred=found)
    return [(c.origin.operator, c) for c in first_candidates(settings, SPEC, {"tongue": machine})]


def test_the_rule_the_plain_one_and_what_the_user_gave():
    given = replace(SETTINGS, schedule=FOUND)
    names = [c.origin.operator for c in first_candidates(given, SPEC, {"tongue": CHIP})]
    assert names == [FIRST, PLAIN, GIVEN]


PART = parse_spec(
    "def joined(x: f32[M, 24], s: f32[24]) -> (f32[M, part(24, first=16, of=48)], f32[M, 24]):\n"
    '    """Scale, store into a part of a larger tensor, and go on."""\n'
    "    y[m, n] = x[m, n] * s[n]\n    z[m, n] = relu(y[m, n])\n    return y, z\n"
)


def test_a_kernel_that_stores_a_part_of_a_larger_tensor_has_all_first_candidates():
    sizes = {"M": 8}
    require_lowered(PART, CHIP, sizes)
    settings = replace(SETTINGS, kernel=PART.name, spec=spec_text(PART), sizes=sizes)
    found = first_candidates(settings, PART, {"tongue": CHIP})
    assert [c.origin.operator for c in found] == [FIRST, PLAIN]
    for c in found:
        lower(PART, parse_schedule(c.schedule), CHIP, sizes)


@pytest.mark.parametrize("refused, left", [("plain", FIRST), ("scheduled", PLAIN)])
def test_a_first_schedule_that_cannot_be_lowered_is_left_out(monkeypatch, refused, left):
    def refuse(*_):
        raise KernelError("it cannot be lowered so")

    monkeypatch.setattr(first, refused, refuse)
    assert [name for name, _ in operators()] == [left]
    require_lowered(SPEC, CHIP, SIZES)
    monkeypatch.setattr(first, "plain", refuse)
    monkeypatch.setattr(first, "scheduled", refuse)
    for made in (operators, lambda: require_lowered(SPEC, CHIP, SIZES)):
        with pytest.raises(KernelError, match="it cannot be lowered so"):
            made()


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


def test_each_backend_has_its_own_in_turn():
    plain_only = replace(CHIP, rendering=Rendering("dialect", ()))
    here = transferred(target="chip", backend="tongue", edited=True)
    settings = replace(SETTINGS, backends=("tongue", "dialect"), transferred=(here,))
    found = first_candidates(settings, SPEC, {"tongue": CHIP, "dialect": plain_only})
    assert [(c.backend, c.origin.operator) for c in found] == [
        (name, operator) for operator in (FIRST, PLAIN, BROUGHT) for name in ("tongue", "dialect")
    ]
    # A source is only for its own backend.
    assert [c.source for c in found if c.origin.operator == BROUGHT] == ["code", None]
    # Each has decisions that its backend supports.
    assert "pipeline" in found[0].schedule and "pipeline" not in found[1].schedule
    # The plain schedule has none of them, but each backend has it as a candidate.
    assert found[2].schedule == found[3].schedule and found[2].key != found[3].key


def test_a_given_schedule_that_one_backend_refuses_is_adapted_for_it():
    settings = replace(SETTINGS, backends=("tongue", "dialect"), schedule=FOUND)
    machines = {"tongue": CHIP, "dialect": replace(CHIP, rendering=Rendering("dialect", ()))}
    found = {
        c.backend: c
        for c in first_candidates(settings, SPEC, machines)
        if c.origin.operator == GIVEN
    }
    assert found["tongue"].schedule == FOUND and "pipeline" in FOUND
    assert str(TILE) in found["dialect"].schedule
    for c in found.values():
        lower(SPEC, parse_schedule(c.schedule), machines[c.backend], SIZES)


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
