"""A maximum that leaves NaN out gives a softmax that does not."""

import numpy as np
import pytest

from backends.registry import target
from backends.triton.interpret.interpreter import interpret
from backends.triton.testing.walks import emitted
from ir.lower.lower import lower
from ir.reference.reference import evaluate
from testing.samples.samples import decisions, spec_of
from testing.samples.special_rows import special_rows

TILED = ("tile(m, size=4)", "tile(k, size=4)")
SOFTMAX = (
    "mx[m] = max(x[m, k], k)",
    "p[m, k] = exp(x[m, k] - mx[m])",
    "s[m] = sum(p[m, k], k)",
    "y[m, k] = p[m, k] / s[m]",
)


@pytest.mark.parametrize("lines", [(), TILED, (*TILED, "online(mx, into=s)")])
def test_softmax_of_a_row_with_nan_is_nan(lines, tmp_path):
    spec, machine, sizes = spec_of(*SOFTMAX), target("mi300"), {"M": 9, "K": 11}
    nest = lower(spec, decisions(spec, *lines), machine, sizes)
    x = {"x": special_rows(9, 11, 5)}
    right = evaluate(spec, x, sizes)["y"]
    assert np.isnan(right).all(axis=1).any() and np.isfinite(right).all(axis=1).any()
    got = interpret(emitted(nest, machine, tmp_path), nest, machine, sizes, x)["y"]
    np.testing.assert_allclose(got, right, rtol=1e-5, atol=1e-7)
