"""Matmuls of i8 are summed in i32 on the matrix unit by every language of GPUs."""

from __future__ import annotations

import numpy as np
import pytest

from backends.measure import check
from backends.registry import REGISTRY, served_by, target
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule, parse_workload

WORK = parse_workload(
    "def f(x: i8[M, K], w: i8[K, N]) -> i32[M, N]:\n"
    '    """Multiply two matrices."""\n'
    "    y[m, n] = sum(i32(x[m, k]) * i32(w[k, n]), k)\n    return y\n"
    "tune(M=128, K=256, N=128)\ncheck(M=33, K=70, N=40)\n",
    "f",
)
SCHEDULE = parse_schedule(
    "schedule(f)\ntile(m, size=32)\ntile(n, size=64)\ntile(k, size=64)\nplace(m.outer, level=grid)\n"
    "place(n.outer, level=grid)\nplace(k.outer, level=loop)\ncompute(y, unit=matrix)\n"
    "pipeline(x, stages=2)\npipeline(w, stages=2)\nthreads(y, count=128)\n"
)
SERVED = [
    *(("triton", name) for name in ("a100", "h200", "mi300")),
    *(("cuda", name) for name in ("a100", "h200")),
    ("cutedsl", "h200"),
]


@pytest.mark.parametrize(("name", "chip"), SERVED)
def test_a_matmul_of_i8_is_exact(name, chip, tmp_path):
    backend = REGISTRY.backend(name)
    machine = served_by(target(chip), backend)
    nest = lower(WORK.spec, SCHEDULE, machine, WORK.tune)
    built = backend.build(backend.emit(nest, machine), nest, machine, tmp_path)
    assert built.figures["f_0.mix.matrix"]
    check(backend, built, nest, machine, WORK.spec, WORK.checks[0], seed=3)
    sizes = {"M": 3, "K": 4099, "N": 5}
    x, w = np.full((3, 4099), 127, np.int8), np.full((4099, 5), -127, np.int8)
    w[0] = 1
    found = backend.run(built, nest, machine, sizes, {"x": x, "w": w})["y"]
    np.testing.assert_array_equal(found, x.astype(np.int64) @ w.astype(np.int64))
