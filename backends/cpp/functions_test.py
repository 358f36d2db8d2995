"""Every pointwise function of the shared prelude, in kernels in C++, against the reference."""

from __future__ import annotations

import numpy as np
import pytest

from backends.backend import BackendError
from backends.cpp.backend import Cpp
from backends.registry import REGISTRY, target
from ir.lower.lower import lower
from ir.reference.reference import evaluate
from testing.samples.function_samples import (
    float_inputs,
    float_spec,
    integer_inputs,
    integer_spec,
    short_inputs,
    short_spec,
)
from testing.samples.samples import decisions, spec_of
from testing.slow import slow

COUNT = 400
SIZES = {"M": COUNT}
MACHINE = target("cpu")
TAIL = {"y_gelu": 5e-7}  # far below 0 it is a difference of nearly equal numbers


LINES = ("tile(m, size=64)", "place(m.outer, level=grid)")


def run(spec, inputs, folder, sizes=SIZES, lines=LINES):
    cpp = Cpp(REGISTRY.manifest("cpp"))
    nest = lower(spec, decisions(spec, *lines), MACHINE, sizes)
    built = cpp.build(cpp.emit(nest, MACHINE), nest, MACHINE, folder)
    return cpp.run(built, nest, MACHINE, sizes, inputs)


@pytest.mark.parametrize("dtype", [slow("f32"), "bf16"])
def test_functions_of_floats(dtype, tmp_path):
    spec, inputs = float_spec(dtype), float_inputs(dtype, COUNT)
    found = run(spec, inputs, tmp_path)
    for name, right in evaluate(spec, inputs, SIZES).items():
        with np.errstate(over="ignore"):
            held = right.astype(found[name].dtype)
        got, least = found[name].astype(np.float64), TAIL.get(name, 1e-30)
        np.testing.assert_allclose(got, held, rtol=2e-6, atol=least, err_msg=name)


@pytest.mark.parametrize("dtype", [slow("i32"), "i64"])
def test_functions_of_integers(dtype, tmp_path):
    spec, inputs = integer_spec(dtype), integer_inputs(dtype, COUNT)
    found = run(spec, inputs, tmp_path)
    for name, right in evaluate(spec, inputs, SIZES).items():
        rtol = 2e-5 if name.startswith("n_") else 0.0
        np.testing.assert_allclose(found[name], right, rtol=rtol, atol=rtol, err_msg=name)


def test_short_integers(tmp_path):
    spec, inputs, sizes = short_spec(), short_inputs(9, 30), {"M": 9, "K": 30}
    lines = ("tile(m, size=4)", "tile(k, size=8)", "place(m.outer, level=grid)")
    found = run(spec, inputs, tmp_path, sizes, lines)
    for name, right in evaluate(spec, inputs, sizes).items():
        np.testing.assert_array_equal(found[name], right, err_msg=name)


def test_a_constant_that_a_double_does_not_hold_is_refused():
    spec = spec_of("y[m] = x[m] + 9007199254740993", inputs="x: i64[M]", result="i64[M]")
    nest = lower(spec, decisions(spec), MACHINE, SIZES)
    with pytest.raises(BackendError, match="no constant as large as 9007199254740993"):
        Cpp(REGISTRY.manifest("cpp")).emit(nest, MACHINE)
