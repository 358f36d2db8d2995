"""Tests the timing process: a failure in it becomes a reading with a reason, and the next job
runs."""

import os
import time
from pathlib import Path

import pytest

from benchmarks.stopwatch import Reading, Stopwatch, TimingJob

GUARD = 1800.0  # Limit in seconds. Only a hang reaches it.


def clock():
    """Replaces the bench. The file's name determines the behaviour."""
    return answer


def answer(job):
    match job.file.name:
        case "dies":
            os._exit(3)
        case "hangs":
            time.sleep(7200)
        case "fails":
            raise ValueError("no good")
        case "device":
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
    return Reading(us=float(os.getpid()))


@pytest.fixture
def stopwatch():
    made = Stopwatch(clock, seconds=GUARD)
    yield made
    made.close()


def job(name):
    return TimingJob(Path(name), "", None, None, {})


def test_one_process_times_many_and_outlives_their_faults(stopwatch):
    first = stopwatch(job("good"))
    assert first.us and not first.reason
    assert stopwatch(job("fails")).reason == "ValueError: no good"
    assert stopwatch(job("good")) == first


def test_a_kernel_that_breaks_the_process_costs_only_itself(stopwatch):
    first = stopwatch(job("good"))
    assert "died" in stopwatch(job("dies")).reason
    second = stopwatch(job("good"))
    assert second.us != first.us
    assert "CUDA error" in stopwatch(job("device")).reason
    assert stopwatch(job("good")).us not in (first.us, second.us)


def test_a_kernel_that_does_not_come_back_is_left(stopwatch):
    stopwatch(job("good"))
    stopwatch.seconds = 0.3
    assert stopwatch(job("hangs")).reason == "no answer in 0.3 s"
    stopwatch.seconds = GUARD
    assert stopwatch(job("good")).us
