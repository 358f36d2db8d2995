"""A kill of the command, of a worker or of a compiler does not change the results, and leaves
nothing behind."""

import pytest

from testing.cli.kills import killed, whole

TARGET = "npu_small"  # its candidates are compiled
FEW = (pytest.param("search", 1, marks=pytest.mark.slow), ("worker", 2), ("compiler", 3))


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    return whole(tmp_path_factory.mktemp("whole"), TARGET)


@pytest.mark.parametrize(("victim", "seed"), FEW)
def test_a_run_in_which_one_was_killed_ends_as_if_it_had_not_been(
    tmp_path, uninterrupted, victim, seed
):
    ended, seconds = uninterrupted
    assert killed(tmp_path, TARGET, victim, seed, seconds) == ended
