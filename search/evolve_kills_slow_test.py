"""Fifty kills at random moments: of the command, of workers, of compilers, of promotions."""

import pytest

from testing.cli.kills import VICTIMS, killed, whole

TARGET = "npu_small"  # its candidates are compiled
KILLS = 50


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    return whole(tmp_path_factory.mktemp("whole"), TARGET)


@pytest.mark.parametrize("seed", range(KILLS))
def test_a_run_in_which_one_was_killed_ends_as_if_it_had_not_been(tmp_path, uninterrupted, seed):
    ended, seconds = uninterrupted
    assert killed(tmp_path, TARGET, VICTIMS[seed % len(VICTIMS)], seed, seconds) == ended
