"""Golden texts of emitted kernels."""

from __future__ import annotations

import pytest

from backends.cpp.backend import Cpp
from backends.registry import REGISTRY, target
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule
from testing.samples.samples import workload

MACHINE = target("cpu")
SCHEDULES = {
    "row_softmax": ("softmax", "tile(m, size=4)\nplace(m.outer, level=grid)"),
    "tiled_matmul": (
        "matmul_bias_gelu",
        "tile(m, size=64)\ntile(n, size=128)\ntile(k, size=256)\nplace(m.outer, level=grid)\n"
        "place(n.outer, level=grid)\nplace(k.outer, level=loop)\ncompute(acc, unit=matrix)",
    ),
    "jagged_sum": (
        "embedding_bag",
        "tile(b, size=1)\ntile(l, size=32)\nplace(b.outer, level=grid)",
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_an_emitted_kernel_is_the_golden_one(name, golden):
    kernel, decisions = SCHEDULES[name]
    w = workload(kernel)
    nest = lower(w.spec, parse_schedule(f"schedule({kernel})\n{decisions}\n"), MACHINE, w.tune)
    text = Cpp(REGISTRY.manifest("cpp")).emit(nest, MACHINE)
    golden(f"backends/cpp/golden/{name}.cc", text)
