"""Harmful sources of every backend: admission refuses each, with the line and the reason."""

import pytest

from backends.backend import BackendError
from tests.hostile.cases import CASES, TARGETS, admit, emitted, hostile

LEAST = 150  # harmful sources


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_emitted_is_admitted(name):
    admit(name, emitted(name))


@pytest.mark.parametrize(("name", "what"), CASES)
def test_a_harmful_source_is_refused_with_a_reason(name, what):
    with pytest.raises(BackendError) as caught:
        admit(name, hostile(name)[what])
    assert caught.value.stage == "build"
    assert caught.value.reason.startswith(("line ", "the source is no Python"))


def test_there_are_enough_of_them_for_every_backend():
    assert len(CASES) >= LEAST
    assert {case.values[0] for case in CASES} == set(TARGETS)
