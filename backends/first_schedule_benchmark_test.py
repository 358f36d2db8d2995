"""How long a first schedule takes: `bazel test --config=benchmark //backends/...`."""

from __future__ import annotations

import gc
import statistics
import time

import pytest

from backends.registry import target
from ir.autoschedule.autoschedule import autoschedule
from ir.parse.parse import parse_spec
from ir.print import spec_text
from testing.samples.samples import KERNELS, workload

# Milliseconds of the processor, the median over the library.
MOST = {"npu": 25.0, "cpu": 25.0, "h200": 30.0}


@pytest.mark.parametrize("chip", MOST)
def test_a_first_schedule(benchmark, chip):
    machine = target(chip)

    def scheduled() -> float:
        times = []
        for kernel in KERNELS:
            one = workload(kernel)
            spec = parse_spec(spec_text(one.spec))  # a new object, of which nothing is remembered
            gc.collect()
            start = time.process_time()
            autoschedule(spec, machine, one.tune)
            times.append(1e3 * (time.process_time() - start))
        return statistics.median(times)

    taken = benchmark.pedantic(scheduled, rounds=1)
    benchmark.extra_info["median_ms"] = round(taken, 2)
    assert taken <= MOST[chip]
