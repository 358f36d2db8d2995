"""How long it takes to emit a source: `bazel test --config=benchmark //backends/...`."""

from __future__ import annotations

import gc
import statistics
import time

import pytest

from backends.registry import backend_for, target
from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from ir.nest.nest import LoopNest
from testing.samples.samples import KERNELS, workload

MOST = 17.0  # milliseconds of the processor, the median over the library


def seed(kernel: str, chip: str) -> LoopNest:
    """The lowered seed schedule of a kernel; a new nest, of which nothing is remembered."""
    one, machine = workload(kernel), target(chip)
    return lower(one.spec, autoschedule(one.spec, machine, one.tune), machine, one.tune)


@pytest.mark.parametrize("chip", ["h200", "mi300"])
def test_emitting_a_source(benchmark, chip):
    machine = target(chip)
    backend = backend_for(machine)
    backend.emit(seed(KERNELS[0], chip), machine)  # templates are compiled once in a process

    def emitted() -> float:
        times = []
        for kernel in KERNELS:
            nest = seed(kernel, chip)
            gc.collect()
            start = time.process_time()
            backend.emit(nest, machine)
            times.append(1e3 * (time.process_time() - start))
        return statistics.median(times)

    taken = benchmark.pedantic(emitted, rounds=1)
    benchmark.extra_info["median_ms"] = round(taken, 2)
    assert taken <= MOST
