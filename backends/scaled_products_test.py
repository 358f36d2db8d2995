"""Block-scaled matmuls in languages without an instruction for them: right, or refused for what is lacking."""

import pytest

from backends.backend import BackendError
from backends.measure import check
from backends.registry import REGISTRY, served_by, target
from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from ir.nest.nest import Dot
from ir.parse.parse import parse_workload

WORK = parse_workload(
    "def scaled(x: f8e4m3[M, B, 32], s: f8e8m0[M, B], w: f8e4m3[N, B, 32], t: f8e8m0[N, B]) -> f32[M, N]:\n"
    '    """Multiply two matrices whose blocks of 32 numbers have scales."""\n'
    "    y[m, n] = sum(f32(x[m, b, i]) * f32(s[m, b]) * f32(w[n, b, i]) * f32(t[n, b]), b, i)\n"
    "    return y\n"
    "tune(M=64, N=64, B=8)\ncheck(M=5, N=7, B=3)\n",
    "scaled",
)


def nest_of(name, chip):
    """The kernel as it is first scheduled: no matmul of it has scales."""
    machine = served_by(target(chip), REGISTRY.backend(name))
    schedule = autoschedule(WORK.spec, machine, WORK.tune)
    nest = lower(WORK.spec, schedule, machine, WORK.tune)
    dots = (s for launch in nest.launches for s in launch.statements() if isinstance(s, Dot))
    assert not any(dot.scales for dot in dots)
    return nest, machine


def test_a_language_that_holds_scales_multiplies_by_them(tmp_path):
    backend = REGISTRY.backend("cuda")
    nest, machine = nest_of("cuda", "h200")
    built = backend.build(backend.emit(nest, machine), nest, machine, tmp_path)
    check(backend, built, nest, machine, WORK.spec, WORK.checks[0], seed=3)


@pytest.mark.parametrize(
    ("name", "chip"), [("triton", "h200"), ("triton", "mi350"), ("sim", "npu")]
)
def test_a_language_that_holds_none_says_so(name, chip):
    nest, machine = nest_of(name, chip)
    with pytest.raises(BackendError, match="tensors of f8e.m. are not held here"):
        REGISTRY.backend(name).emit(nest, machine)
