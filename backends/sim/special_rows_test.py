"""NaN and infinities on the simulated accelerator: the same as in the reference."""

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.registry import REGISTRY, target
from backends.sim.backend import Sim
from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from ir.reference.reference import evaluate
from ir.reference.rounding import round_to
from ir.samples.samples import decisions
from ir.samples.special_rows import NAMES, extremes, special_rows

MACHINE, BACKEND = target("npu"), Sim(REGISTRY.manifest("sim"))
TUNED = {"M": 16, "K": 24}
TILED = ("tile(m, size=4)", "tile(k, size=8)", "place(m.outer, level=grid)")
CASES = {  # names, and decisions; none: those of the autoschedule
    "tiled": (NAMES, TILED),
    "streamed": (("argmax",), (*TILED, "stream(y_argmax_top, into=y_argmax)")),
    "found": (("argmin", "cummax", "max"), ()),
}


@cache
def built(case: str, dtype: str):
    names, lines = CASES[case]
    spec = extremes(*names, dtype=dtype)
    schedule = decisions(spec, *lines) if lines else autoschedule(spec, MACHINE, TUNED)
    nest = lower(spec, schedule, MACHINE, TUNED)
    folder = Path(mkdtemp(prefix="special_rows_"))
    return spec, nest, BACKEND.build(BACKEND.emit(nest, MACHINE), nest, MACHINE, folder)


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("case", CASES)
@given(rows=st.integers(1, 9), columns=st.integers(1, 30), seed=st.integers(0, 999))
def test_special_rows(case, dtype, rows, columns, seed):
    spec, nest, kernel = built(case, dtype)
    sizes, x = {"M": rows, "K": columns}, special_rows(rows, columns, seed)
    x = x if dtype == "f32" else round_to(x, dtype)
    found = BACKEND.run(kernel, nest, MACHINE, sizes, {"x": x})
    for name, right in evaluate(spec, {"x": x}, sizes).items():
        np.testing.assert_array_equal(found[name], right, err_msg=name)
