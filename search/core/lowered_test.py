"""Each text is parsed once and each schedule is lowered once at each shape, with the same
results."""

from collections import Counter
from dataclasses import replace

import pytest

from ir.autoschedule.autoschedule import autoschedule
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.machine import Space
from search.core import lowered as module
from search.core.candidate import Candidate
from search.core.lowered import (
    Remembered,
    fits_at,
    nest_of,
    schedule_of,
    schedule_text,
    spec_of,
    variant_text,
)
from search.core.testing import CHIP, SETTINGS, SIZES, SPEC

FIRST = autoschedule(SPEC, CHIP, SIZES)
CANDIDATE = Candidate(SETTINGS.spec, str(FIRST), "chip", "tongue")


@pytest.fixture(autouse=True)
def made(monkeypatch):
    """Counts how often each text is parsed and each schedule is lowered."""
    counts = Counter()

    def counting(name):
        real = getattr(module, name)

        def counted(*args):
            counts[name] += 1
            return real(*args)

        monkeypatch.setattr(module, name, counted)

    for name in ("parse_spec", "parse_schedule", "lower"):
        counting(name)
    module.forget()
    yield counts
    module.forget()


def test_a_candidate_is_parsed_once_and_lowered_once_at_each_shape(made):
    for sizes in (SIZES, {**SIZES, "M": 128}, dict(SIZES)):
        assert nest_of(CANDIDATE, CHIP, sizes) == lower(SPEC, FIRST, CHIP, sizes)
    assert made == {"parse_spec": 1, "parse_schedule": 1, "lower": 2}


def test_what_was_made_as_a_value_is_not_parsed(made):
    assert schedule_of(schedule_text(FIRST)) is FIRST
    assert spec_of(variant_text(SPEC)) is SPEC
    assert made == {}


def test_a_fault_is_found_once_and_said_each_time(made):
    tiny = replace(CHIP, spaces={**CHIP.spaces, "local": Space(8)})
    said = set()
    for _ in range(3):
        with pytest.raises(KernelError) as error:
            nest_of(CANDIDATE, tiny, SIZES)
        said.add(str(error.value))
    assert made["lower"] == len(said) == 1
    assert not fits_at(CANDIDATE.variant, CANDIDATE.schedule, tiny, SIZES)
    assert fits_at(CANDIDATE.variant, CANDIDATE.schedule, CHIP, SIZES)


def test_the_value_that_was_asked_for_longest_ago_goes():
    values = Remembered(2)
    made = []

    def make(key):
        return values.get(key, lambda: made.append(key) or key)

    for key in "abacab":
        assert make(key) == key
    assert "".join(made) == "abcb"
