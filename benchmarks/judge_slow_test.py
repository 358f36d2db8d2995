"""Every cheat of a solution, through the command."""

import pytest

from benchmarks.testing.solutions import CHEATS, cheat, judge

__all__ = ["judge"]  # a fixture


@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_is_refused_for_its_reason(judge, name):
    lines, kind, said, options = CHEATS[name]
    code, found = judge(cheat(lines), *options)
    assert (code, found["accepted"]) == (1, False), found
    assert found["kind"] == kind and said in found["reason"], found["reason"]
