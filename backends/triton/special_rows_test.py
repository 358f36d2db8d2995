"""NaN and infinities in emitted Triton, interpreted: the same as in the reference."""

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.registry import target
from backends.triton.interpret.interpreter import interpret
from backends.triton.walks import emitted
from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from ir.reference.reference import evaluate
from ir.reference.rounding import round_to
from ir.samples.samples import decisions
from ir.samples.special_rows import NAMES, extremes, special_rows

TUNED = {"M": 16, "K": 24}
TILED = ("tile(m, size=4)", "tile(k, size=8)", "place(m.outer, level=grid)")
CASES = {  # names, and decisions; none: those of the autoschedule
    "tiled": (NAMES, TILED),
    "streamed": (("argmax",), (*TILED, "stream(y_argmax_top, into=y_argmax)")),
    "split": (("max",), (*TILED, "split(y_max, over=k, parts=2)")),
    "found": (("argmin", "cummax", "max"), ()),
}


@cache
def made(case: str, dtype: str, chip: str):
    (names, lines), machine = CASES[case], target(chip)
    spec = extremes(*names, dtype=dtype)
    schedule = decisions(spec, *lines) if lines else autoschedule(spec, machine, TUNED)
    nest = lower(spec, schedule, machine, TUNED)
    return spec, nest, emitted(nest, machine, Path(mkdtemp(prefix="special_rows_")))


@pytest.mark.parametrize("chip", ["h200", "mi300"])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("case", CASES)
@settings(max_examples=10)
@given(rows=st.integers(1, 9), columns=st.integers(1, 30), seed=st.integers(0, 999))
def test_special_rows(case, dtype, chip, rows, columns, seed):
    spec, nest, kernel = made(case, dtype, chip)
    sizes, x = {"M": rows, "K": columns}, special_rows(rows, columns, seed)
    x = x if dtype == "f32" else round_to(x, dtype)
    found = interpret(kernel, nest, target(chip), sizes, {"x": x})
    for name, right in evaluate(spec, {"x": x}, sizes).items():
        np.testing.assert_array_equal(found[name], right, err_msg=name)
