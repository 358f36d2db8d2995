"""The cost of compiling a candidate in a warm process.

Run by `bazel test --config=benchmark //backends/...`.
"""

from __future__ import annotations

from functools import cache

import pytest

from backends.registry import target
from backends.triton.build import compile as compiler
from backends.triton.testing.walks import emitted
from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from ir.nest.nest import LoopNest
from testing.samples.samples import KERNELS, workload


@cache
def nests(chip: str) -> tuple[LoopNest, ...]:
    """The lowered seed schedules of the library."""
    machine = target(chip)
    works = (workload(name) for name in KERNELS)
    return tuple(
        lower(w.spec, autoschedule(w.spec, machine, w.tune), machine, w.tune) for w in works
    )


@pytest.mark.parametrize("chip", ["h200", "mi300"])
def test_compiling_a_candidate(benchmark, chip, tmp_path):
    """The mean over the library, in seconds per kernel, is in `extra_info`."""
    machine, found = target(chip), nests(chip)
    texts = [emitted(nest, machine, tmp_path).file.read_text(encoding="utf-8") for nest in found]
    compiler.build(texts[0], found[0], machine, tmp_path)  # what a process does once
    folders = (tmp_path / str(n) for n in range(1_000_000))

    def compiled() -> float:
        total = 0.0
        for text, nest in zip(texts, found, strict=True):
            folder = next(folders)
            folder.mkdir()
            total += compiler.build(text, nest, machine, folder).figures["compile_seconds"]
        return total

    inside = benchmark.pedantic(compiled, rounds=2, iterations=1)
    benchmark.extra_info["kernels"] = len(found)
    benchmark.extra_info["seconds_each"] = benchmark.stats.stats.mean / len(found)
    benchmark.extra_info["in_the_compiler"] = inside / len(found)
    assert inside > 0
