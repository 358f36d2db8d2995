"""Operands that the DMA engine rounds to tf32: the text is right where it copies, and where producers do."""

import pytest

from backends.cuda.testing.emulation import emulated, machine_of
from backends.cuda.testing.samples import backend
from backends.gpu.cubins.driver import encoding
from backends.gpu.source.launches import Map
from backends.measure import check, compare, reference
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule, parse_workload

WORK = parse_workload(
    "def f(x: f32[M, K], w: f32[N, K]) -> f32[M, N]:\n"
    '    """Multiply two matrices, rounded to tf32."""\n'
    "    xr[m, k] = tf32(x[m, k])\n    wr[n, k] = tf32(w[n, k])\n"
    "    y[m, n] = sum(f32(xr[m, k]) * f32(wr[n, k]), k)\n    return y\n"
    "tune(M=128, K=128, N=128)\ncheck(M=33, K=71, N=40)\ncheck(M=64, K=68, N=64)\n",
    "f",
)
SCHEDULE = (
    "schedule(f)\ntile(m, size=64)\ntile(n, size=64)\ntile(k, size=32)\nplace(m.outer, level=grid)\n"
    "place(n.outer, level=grid)\nplace(k.outer, level=loop)\ncompute(y, unit=matrix)\n"
    "pipeline(x, stages=3)\npipeline(w, stages=3)\ncopy(x, by=bulk)\ncopy(w, by=bulk)\n"
    "threads(y, count=128)\n"
)


def test_a_matmul_of_tf32_is_right_whoever_copies(tmp_path):
    machine = machine_of("h200")
    nest = lower(WORK.spec, parse_schedule(SCHEDULE), machine, WORK.tune)
    source = backend().emit(nest, machine)
    built = backend().build(source, nest, machine, tmp_path)
    assert built.figures["spills"] == 0 and "wgmma<64" in source
    for sizes in WORK.checks:
        known = reference(nest.spec, sizes, 3)
        found = emulated(source, nest, machine, sizes, known.inputs, tmp_path)
        compare(nest.spec, sizes, "y", found["y"], known)
        check(backend(), built, nest, machine, WORK.spec, sizes, 3)


@pytest.mark.parametrize(("dtype", "kind"), [("f32", 7), ("tf32", 11), ("f8e4m3", 0), ("i32", 3)])
def test_the_engine_is_told_what_it_copies(dtype, kind):
    assert encoding(Map(0, dtype, (64, 64), (8, 8), (1, 1), 0)).type == kind
