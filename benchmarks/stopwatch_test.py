"""The process that times: what breaks in it is a reading with a reason, and the next one runs."""

import os
import time
from pathlib import Path

import pytest

from benchmarks.stopwatch import Bench, Job, Reading, Stopwatch
from ir.samples import lowered


def clock():
    """What the process calls for each job: the file's name says what happens."""
    return answer


def answer(job):
    match job.file.name:
        case "dies":
            os._exit(3)
        case "hangs":
            time.sleep(60)
        case "fails":
            raise ValueError("no good")
        case "device":
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
    return Reading(us=float(os.getpid()))


@pytest.fixture
def stopwatch():
    made = Stopwatch(clock, seconds=30.0)
    yield made
    made.close()


def job(name):
    return Job(Path(name), None, {})


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
    stopwatch.seconds = 30.0
    assert stopwatch(job("good")).us


class Processor:
    """A device whose clock goes on by 100 us a mark; its work is done when it is asked for."""

    def __init__(self):
        self.us = 0.0

    def flush(self):
        pass

    def spin(self, us):
        pass

    def wait(self):
        pass

    def mark(self):
        self.us += 100.0
        return self.us

    def us_between(self, first, second):
        return second - first

    def now(self):
        return 1e-6 * self.us


SOURCE = """
import torch

def launch(x, y):
    torch.add(torch.softmax(x, 1), {off}, out=y)
"""


def test_a_bench_times_and_compares_with_the_first_schedule(tmp_path):
    bench = Bench(Processor(), "cpu")
    sizes = {"M": 8, "K": 16}
    nest = lowered("softmax", "tile(m, size=1)", "place(m.outer, level=grid)", sizes=sizes)
    found = []
    for name, off in (("first", 0.0), ("same", 0.0), ("other", 0.5)):
        file = tmp_path / name / "kernel.py"
        file.parent.mkdir()
        file.write_text(SOURCE.format(off=off))
        found.append(bench(Job(file, nest, sizes)))
    assert [r.us for r in found] == [100.0] * 3
    assert found[0].apart == found[1].apart == 0.0
    assert found[2].apart > 1
