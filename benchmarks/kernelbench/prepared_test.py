"""Tests the facts of a prepared problem."""

from types import SimpleNamespace

import pytest

from backends.compiled import Kernels
from backends.registry import backend_for, target
from benchmarks.kernelbench.prepared import ROUNDED, _precisions
from testing.samples.samples import WITH_TF32, lowered, spec_of

SPEC = spec_of(
    "convolution_2[m, n] = sum(x[m, k] * w[k, n], k)",
    "y[m, n] = convolution_2[m, n] + 1.0",
    inputs="x: f32[M, K], w: f32[K, N]",
    result="f32[M, N]",
)
COPIES = ("pack(x, order=m_k, dtype=tf32)", "pack(w, order=n_k, dtype=tf32)")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (("pack(w, order=n_k)",), set()),
        (("precision(convolution_2, dtype=tf32x3)",), {"convolution: tf32x3"}),
        (("precision(convolution_2, dtype=tf32)",), {"convolution: tf32"}),
        (COPIES, {"convolution: tf32"}),
    ],
)
def test_products_are_said_to_be_rounded_wherever_that_is_done(lines, said):
    lines = ("compute(convolution_2, unit=matrix)", *lines)
    nest = lowered(SPEC, *lines, sizes={"M": 20, "K": 32, "N": 24}, machine=WITH_TF32)
    assert _precisions(SimpleNamespace(kernels={SPEC: SimpleNamespace(nest=nest)})) == said


def test_what_another_kernel_rounded_is_said_too():
    spec = spec_of(
        "convolution_2[m, n] = sum(x[m, k] * w[k, n], k)",
        "y[m, n] = convolution_2[m, n] + 1.0",
        inputs="x: tf32[M, K], w: tf32[K, N]",
        result="f32[M, N]",
    )
    nest = lowered(spec, sizes={"M": 20, "K": 32, "N": 24}, machine=WITH_TF32)
    assert _precisions(SimpleNamespace(kernels={spec: SimpleNamespace(nest=nest)})) == {
        "convolution: tf32"
    }


@pytest.mark.parametrize(
    ("channels", "least", "said"), [(8, 0, "tf32"), (8, 16, "tf32x3"), (16, 16, "tf32")]
)
def test_sums_of_few_channels_may_stay_in_f32(channels, least, said):
    spec = spec_of(
        "convolution[b, o, i] = sum(pad(x[b, c, i + r - 1], 0.0) * w[o, c, r], c, r)",
        "y[b, o, i] = convolution[b, o, i] + 1.0",
        inputs=f"x: f32[64, {channels}, 256], w: f32[64, {channels}, 3]",
        result="f32[64, 64, 256]",
    )
    machine = target("h200")
    kernels = Kernels(machine, backend_for(machine), ROUNDED, least=least)
    nest, _ = kernels.emit(spec)
    assert _precisions(SimpleNamespace(kernels={spec: SimpleNamespace(nest=nest)})) == {
        f"convolution: {said}"
    }
