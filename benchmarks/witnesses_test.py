"""Tests processes that time the same calls: each returns its times, and a failure in one has a
reason."""

import os
from functools import partial

import pytest

from backends.registry import target
from benchmarks import race
from benchmarks.race_job import RaceJob
from benchmarks.rehearsal import SlowDevice
from benchmarks.shapes import Row
from benchmarks.witnesses import Witnesses
from testing.samples.samples import workload

ROW = Row("softmax", "f32", {"M": 16, "K": 32})
SPEC = workload("softmax").spec
JOB = RaceJob(ROW, SPEC, name="eager")


def opened(marks=None):
    if marks is not None:
        (marks / str(os.getpid())).touch()
    machine = target("h200")
    return race.Track(machine, "made_up", SlowDevice(), place="cpu", runs=(4, 5), spins=0)


def broken():
    raise RuntimeError("no driver")


@pytest.fixture
def witnesses():
    made = []

    def make(count, how):
        made.append(Witnesses(count, how))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_each_process_has_a_time_of_its_own(witnesses, tmp_path):
    asked = witnesses(3, partial(opened, tmp_path))
    for _ in range(2):
        found = asked(JOB)
        assert len(found) == 3 and all(one.us > 0 and 4 <= one.runs <= 5 for one in found)
    assert len(list(tmp_path.iterdir())) == 3, "opened once each, by processes of their own"
    assert str(os.getpid()) not in [p.name for p in tmp_path.iterdir()]


def test_what_goes_wrong_in_one_is_told_and_the_next_job_is_answered(witnesses):
    asked = witnesses(2, opened)
    with pytest.raises(RuntimeError, match="KeyError"):
        asked(RaceJob(ROW, SPEC, name="nothing_such"))
    with pytest.raises(RuntimeError, match="no driver"):
        witnesses(1, broken)(JOB)


def test_a_process_that_died_is_told(witnesses):
    asked = witnesses(2, opened)
    asked(JOB)
    asked._processes[1].kill()
    asked._processes[1].join()
    with pytest.raises(RuntimeError, match="a process that times has died"):
        asked(JOB)


def test_they_end_with_who_asks(witnesses):
    asked = witnesses(2, opened)
    asked.close()
    assert all(not p.is_alive() for p in asked._processes)
