"""Tests that baselines compute what the specs define: in float64, at every check size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.baselines import BASELINES, MODES
from ir.parse.parse import parse_workload
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from testing.samples.samples import KERNELS, LIBRARY

SPECS = Path(__file__).parent / "specs"
FILES = {f.stem: f for folder in (LIBRARY, SPECS) for f in sorted(folder.glob("*.kir"))}
CASES = [
    (kernel, sizes)
    for kernel in FILES
    for sizes in parse_workload(FILES[kernel].read_text(encoding="utf-8"), kernel).checks
]


def case(kernel, sizes):
    """Returns the inputs in float64 (integers keep their dtypes), and the reference's output."""
    spec = parse_workload(FILES[kernel].read_text(encoding="utf-8"), kernel).spec
    inputs = random_inputs(spec, sizes, np.random.default_rng(1))
    wide = {n: a.astype(np.float64) if a.dtype.kind == "f" else a for n, a in inputs.items()}
    (exact,) = evaluate(spec, wide, sizes).values()
    return [torch.from_numpy(wide[t.name]) for t in spec.inputs], exact


def test_every_kernel_has_a_baseline():
    assert set(KERNELS) <= set(BASELINES) and set(BASELINES) == set(FILES)


@pytest.mark.parametrize(("kernel", "sizes"), CASES, ids=str)
def test_a_baseline_equals_the_reference(kernel, sizes):
    inputs, exact = case(kernel, sizes)
    got = BASELINES[kernel].call(*inputs).numpy()
    assert got.shape == exact.shape
    if exact.dtype.kind == "f":
        np.testing.assert_allclose(got, exact, rtol=1e-9, atol=1e-11)
    else:
        np.testing.assert_array_equal(got, exact)


@pytest.mark.parametrize("kernel", [k for k in BASELINES if BASELINES[k].forms])
def test_another_form_computes_the_same(kernel):
    inputs, exact = case(kernel, CASES[[k for k, _ in CASES].index(kernel) + 1][1])
    for form in BASELINES[kernel].forms.values():
        given = form.prepare(*inputs) if form.prepare else inputs
        got = form.call(*given).reshape(exact.shape)
        np.testing.assert_allclose(got.numpy(), exact, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("kernel", [k for k in BASELINES if BASELINES[k].rows])
def test_rows_of_a_baseline_are_independent(kernel):
    inputs, exact = case(kernel, [s for k, s in CASES if k == kernel][-1])
    rows = exact.shape[0]
    for row in (slice(0, 1), slice(rows // 2, rows)):
        part = [t[row] if t.shape[0] == rows and t.dim() > 0 else t for t in inputs]
        if kernel.startswith("matmul") or kernel == "rmsnorm_matmul":
            part = [inputs[0][row], *inputs[1:]]
        got = BASELINES[kernel].call(*part).numpy()
        np.testing.assert_allclose(got, exact[row], rtol=1e-9, atol=1e-11)


def test_names_lead_to_a_form_and_a_mode():
    conv = BASELINES["conv1d"]
    assert conv.names() == (
        "eager",
        *MODES,
        "eager_conv2d",
        "max_autotune_conv2d",
        "eager_channels_last",
    )
    for name in conv.names():
        form, mode = conv.find(name)
        assert name.startswith(mode)
    assert conv.find("max_autotune")[0].call is conv.call
    with pytest.raises(KeyError):
        conv.find("compile_conv2d")
