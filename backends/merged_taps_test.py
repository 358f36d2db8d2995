"""A short loop over all taps and channels of a convolution is written out in Triton, and computes the same."""

from backends.measure import check
from backends.registry import REGISTRY, served_by, target
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule, parse_workload

WORK = parse_workload(
    '''def f(x: f32[B, 3, H, W], w: f32[32, 3, 3, 3]) -> f32[B, 32, H, W]:
    """Convolve images of three channels."""
    y[b, o, p, q] = sum(pad(x[b, c, p + i - 1, q + j - 1], 0.0) * w[o, c, i, j], c, i, j)
    return y
tune(B=4, H=32, W=32)
check(B=2, H=5, W=19)
''',
    "f",
)
SCHEDULE = parse_schedule(
    "schedule(f)\nflatten(i, inner=j)\nflatten(c, inner=ij)\ntile(cij, size=16)\ntile(b, size=1)\n"
    "tile(p, size=1)\ntile(q, size=32)\nplace(b.outer, level=grid)\nplace(p.outer, level=grid)\n"
    "place(q.outer, level=grid)\nplace(cij.outer, level=loop)\ncompute(y, unit=matrix)\n"
    "precision(y, dtype=tf32x3)\nthreads(y, count=128)\n"
)


def test_such_a_loop_is_right(tmp_path):
    backend = REGISTRY.backend("triton")
    machine = served_by(target("h200"), backend)
    nest = lower(WORK.spec, SCHEDULE, machine, WORK.tune)
    source = backend.emit(nest, machine)
    assert "in tl.static_range(0, 27, 16):" in source
    built = backend.build(source, nest, machine, tmp_path)
    check(backend, built, nest, machine, WORK.spec, WORK.checks[0], seed=3)
