"""The backend's own promises: what it can do here, races shown by orders, a timeline."""

from __future__ import annotations

import json

import numpy as np
import pytest

from backends.backend import Built
from backends.registry import REGISTRY, target
from backends.triton import backend
from backends.triton.backend import Triton
from backends.triton.interpret import interpreter
from ir.lower.lower import lower
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from testing.samples.samples import decisions, spec_of

SIZES = dict(M=64, K=32)
SPEC = spec_of("s[m] = sum(x[m, k], k)", "y[m, k] = x[m, k] * s[m]")
LINES = ("kernel(s)", "tile(m, size=16)", "place(m.outer, level=grid)")
H200 = target("h200")
NEST = lower(SPEC, decisions(SPEC, *LINES), H200, SIZES)


@pytest.fixture
def triton(monkeypatch) -> Triton:
    """The backend where the target's device is not there."""
    monkeypatch.setattr(backend, "present", lambda machine: "there is none in this test")
    return Triton(REGISTRY.manifest("triton"))


@pytest.fixture
def built(triton, tmp_path) -> Built:
    return triton.build(triton.emit(NEST, H200), NEST, H200, tmp_path)


def test_without_the_device_results_are_interpreted_and_times_modelled(triton):
    can = triton.available(H200)
    assert (can["correct_by"], can["time_kind"]) == ("interpreter", "modelled")
    assert can["why"] == "there is none in this test"
    assert can["toolchain"].startswith("triton")


def test_on_the_device_everything_is_its_own(triton, monkeypatch):
    monkeypatch.setattr(backend, "present", lambda machine: "")
    can = triton.available(H200)
    assert (can["correct_by"], can["time_kind"]) == ("device", "measured")
    assert can["memory"] is None


def test_a_kernel_is_built_run_timed_and_profiled(triton, built, tmp_path):
    inputs = random_inputs(SPEC, SIZES, np.random.default_rng(2))
    found = triton.run(built, NEST, H200, SIZES, inputs)
    np.testing.assert_allclose(found["y"], evaluate(SPEC, inputs, SIZES)["y"], rtol=1e-4)
    timing = triton.time(built, NEST, H200, SIZES, inputs)
    assert timing.kind == "modelled" and timing.us > 0
    trace = tmp_path / "trace.json"
    assert triton.profile(built, NEST, H200, SIZES, inputs, trace).us == timing.us
    bars = json.loads(trace.read_text())["traceEvents"]
    assert [bar["name"] for bar in bars] == ["f_0", "f_1"]
    assert bars[1]["ts"] == pytest.approx(bars[0]["dur"])
    assert bars[0]["args"]["f_0.registers"] > 0


def test_each_run_takes_its_programs_in_another_order(triton, tmp_path, monkeypatch):
    orders = []
    monkeypatch.setattr(interpreter, "interpret", lambda *args: orders.append(args[-1]))
    for _ in range(3):
        triton.run(Built(tmp_path / "kernel.py"), NEST, H200, SIZES, {})
    assert len(set(orders)) == 3
