"""Softmax of sums with a mask of the lowest number, which is finite: a row that is masked whole gives
equal weights, as in PyTorch, and not NaN."""

from __future__ import annotations

import numpy as np
import pytest

from backends.registry import REGISTRY, served_by, target
from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from testing.samples.samples import decisions, spec_of

LOWEST = np.finfo(np.float32).min
SPEC = spec_of(
    "s[m, k] = x[m, k] + mask[m, k]",
    "mx[m] = max(s[m, k], k)",
    "p[m, k] = exp(s[m, k] - mx[m])",
    "l[m] = sum(p[m, k], k)",
    "y[m, k] = p[m, k] / l[m]",
    inputs="x: f32[M, K], mask: f32[M, K]",
)
SIZES = {"M": 3, "K": 37}
ONLINE = spec_of(
    "s[m, k] = x[m, k] + mask[m, k]",
    "mx[m] = max(s[m, k], k)",
    "p[m, k] = exp(s[m, k] - mx[m])",
    "l[m] = sum(p[m, k], k)",
    "o[m] = sum(p[m, k] * v[k], k)",
    "y[m] = o[m] / l[m]",
    inputs="x: f32[M, K], mask: f32[M, K], v: f32[K]",
    result="f32[M]",
)
LOOP = (
    "tile(k, size=16)",
    "place(k.outer, level=loop)",
    "fuse(l, into=o)",
    "online(mx, into=o)",
)
SERVED = [(name, chip) for chip in ("cpu", "h200", "mi300") for name in target(chip).backends]


@pytest.mark.parametrize(("name", "chip"), SERVED)
def test_a_row_that_is_masked_whole_gives_equal_weights(name, chip, tmp_path):
    backend = REGISTRY.backend(name)
    machine = served_by(target(chip), backend)
    nest = lower(SPEC, autoschedule(SPEC, machine, SIZES), machine, SIZES)
    built = backend.build(backend.emit(nest, machine), nest, machine, tmp_path)
    x = np.random.default_rng(3).standard_normal((3, 37)).astype(np.float32)
    mask = np.zeros_like(x)
    mask[1], mask[2, 5:] = LOWEST, LOWEST
    found = backend.run(built, nest, machine, SIZES, {"x": x, "mask": mask})["y"]
    expected = np.exp(x.astype(np.float64))
    expected[1], expected[2, 5:] = 1, 0
    expected /= expected.sum(1, keepdims=True)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=0)


@pytest.mark.parametrize(("name", "chip"), [*SERVED, ("cpp", "npu")])
def test_the_same_holds_where_the_maximum_runs_with_the_sums(name, chip, tmp_path):
    backend = REGISTRY.backend(name)
    machine = served_by(target(chip), backend)
    decided = decisions(ONLINE, "tile(m, size=1)", "place(m.outer, level=grid)", *LOOP)
    nest = lower(ONLINE, decided, machine, SIZES)
    built = backend.build(backend.emit(nest, machine), nest, machine, tmp_path)
    rng = np.random.default_rng(3)
    x, v = (rng.standard_normal(s).astype(np.float32) for s in ((3, 37), 37))
    mask = np.zeros_like(x)
    mask[1], mask[2, :35] = LOWEST, LOWEST
    found = backend.run(built, nest, machine, SIZES, {"x": x, "mask": mask, "v": v})["y"]
    weights = np.exp(x.astype(np.float64))
    weights[1], weights[2, :35] = 1, 0
    np.testing.assert_allclose(found, weights @ v / weights.sum(1), rtol=1e-4, atol=1e-6)
