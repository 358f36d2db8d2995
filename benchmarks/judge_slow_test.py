"""Tests every cheat of a solution through the command."""

import pytest

from benchmarks.testing.solutions import CHEATS, HONEST, LISTED, cheat, judge

__all__ = ["judge"]  # a fixture


@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_is_refused_for_its_reason(judge, name):
    lines, kind, said, options = CHEATS[name]
    code, found = judge(cheat(lines), *options)
    assert (code, found["accepted"]) == (1, False), found
    assert found["kind"] == kind and said in found["reason"], found["reason"]


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_oddity_is_accepted(judge, name):
    code, found = judge(cheat(HONEST[name]), LISTED)
    assert (code, found["accepted"], found["reason"]) == (0, True, "")
