"""Running extremes of integers on the simulated accelerator, whose scans begin at an infinity."""

import numpy as np
import pytest

from backends.registry import REGISTRY, target
from backends.sim.backend import Sim
from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from ir.parse.parse import parse_spec

ROWS = {"cummin": np.minimum, "cummax": np.maximum}


@pytest.mark.parametrize("dtype", ["i32", "i64"])
@pytest.mark.parametrize("scan", ROWS)
def test_extremes_of_integers(scan, dtype, tmp_path):
    text = (
        f"def rows(x: {dtype}[M, K]) -> {dtype}[M, K]:\n"
        f'    """Running extremes of rows."""\n    y[m, k] = {scan}(x[m, k], k)\n    return y\n'
    )
    machine, backend, spec = target("npu"), Sim(REGISTRY.manifest("sim")), parse_spec(text)
    sizes = {"M": 3, "K": 9}
    nest = lower(spec, autoschedule(spec, machine, sizes), machine, sizes)
    built = backend.build(backend.emit(nest, machine), nest, machine, tmp_path)
    sign = -1 if scan == "cummax" else 1
    x = sign * np.random.default_rng(0).integers(5, 90, (3, 9)).astype(dtype.replace("i", "int"))
    found = backend.run(built, nest, machine, sizes, {"x": x})["y"]
    np.testing.assert_array_equal(found, ROWS[scan].accumulate(x, axis=1))
