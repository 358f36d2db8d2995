"""Attention with a mask of positions: first schedules for GPUs skip the tiles that the mask removes whole."""

from __future__ import annotations

import pytest

from backends.measure import check
from backends.registry import REGISTRY, served_by, target
from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from testing.samples.samples import spec_of
from testing.slow import in_turn

SERVED = [(name, chip) for chip in ("h200", "mi300") for name in target(chip).backends]
MASKS = {"causal": "n <= m", "window": "(n <= m) & (n > m - 50)", "later": "n >= m + 3"}


def attention(mask):
    return spec_of(
        "s[m, n] = sum(f32(q[m, d]) * f32(k[n, d]), d)",
        f"a[m, n] = where({mask}, s[m, n] * 0.125, -inf)",
        "t[m] = max(a[m, n], n)",
        "p[m, n] = exp(a[m, n] - t[m])",
        "l[m] = sum(p[m, n], n)",
        "o[m, e] = sum(p[m, n] * f32(v[n, e]), n)",
        "y[m, e] = bf16(where(t[m] == -inf, 0.0, o[m, e] / l[m]))",
        inputs="q: bf16[M, D], k: bf16[N, D], v: bf16[N, D]",
        result="bf16[M, D]",
    )


@pytest.mark.parametrize(("served", "mask"), in_turn(SERVED, MASKS))
def test_tiles_that_are_masked_whole_are_skipped(served, mask, tmp_path):
    name, chip = served
    backend = REGISTRY.backend(name)
    machine = served_by(target(chip), backend)
    spec, tune = attention(MASKS[mask]), {"M": 2048, "N": 2048, "D": 64}
    schedule = autoschedule(spec, machine, tune)
    assert schedule.find("causal_bound", "n")
    nest = lower(spec, schedule, machine, tune)
    built = backend.build(backend.emit(nest, machine), nest, machine, tmp_path)
    check(backend, built, nest, machine, spec, {"M": 131, "N": 140, "D": 64}, seed=2)


@pytest.mark.parametrize("name", ["triton", "hip"])
def test_skipping_them_takes_less_time(name):
    backend = REGISTRY.backend(name)
    machine = served_by(target("mi300"), backend)
    tune = {"M": 2048, "N": 2048, "D": 64}
    masked, whole = (attention(mask) for mask in ("n <= m", "n < 1000000"))
    us = [
        backend.guess(lower(spec, autoschedule(spec, machine, tune), machine, tune), machine, tune)
        for spec in (masked, whole)
    ]
    assert us[0] < 0.8 * us[1]
