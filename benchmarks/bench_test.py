"""Tests a bench with a fake device."""

from backends.registry import target
from backends.triton.build.module import load
from backends.triton.device import device
from benchmarks.bench import TimingBench
from benchmarks.stopwatch import TimingJob
from testing.samples.samples import lowered


class Processor:
    """A fake device. Its clock advances by 100 us per mark, and its work is complete when
    queried."""

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


def test_a_bench_times_and_compares_with_the_first_schedule(tmp_path, monkeypatch):
    # A CPU runs no Triton kernels, so the launch is a function of PyTorch.
    monkeypatch.setattr(device, "launcher", lambda file, stage, _: load(file, stage).launch)
    bench = TimingBench(Processor(), "cpu")
    sizes = {"M": 8, "K": 16}
    nest = lowered("softmax", "tile(m, size=1)", "place(m.outer, level=grid)", sizes=sizes)
    found = []
    for name, off in (("first", 0.0), ("same", 0.0), ("other", 0.5)):
        file = tmp_path / name / "kernel.py"
        file.parent.mkdir()
        file.write_text(SOURCE.format(off=off))
        found.append(bench(TimingJob(file, "triton", target("h200"), nest, sizes)))
    assert [r.us for r in found] == [100.0] * 3
    assert found[0].apart == found[1].apart == 0.0
    assert found[2].apart > 1
