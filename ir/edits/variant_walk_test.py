"""Random walks over all decisions on a machine with registers: what lowering accepts is right."""

import random

import numpy as np
import pytest

from ir.autoschedule.autoschedule import plain
from ir.edits.edits import neighbours
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.lower.verb_table import canonical
from ir.parse.parse import parse_workload
from ir.parse.schedule import parse_schedule
from ir.reference.inputs import random_inputs
from ir.reference.interpret import interpret
from ir.reference.reference import evaluate
from ir.schedule import Schedule
from ir.spec import Spec
from testing.samples.samples import KERNELS, WITH_TF32, decisions, workload

WALKS = 3
LONGEST_WALK = 14
NEW = (
    "flatten",
    "split_k",
    "pack",
    "causal_bound",
    "precision",
    "kernel",
    "online",
    "fuse",
    "hoist",
)
CAUSAL = """
def causal(q: f32[H, M, D], k: f32[H, M, D], v: bf16[H, M, D]) -> f32[H, M, D]:
    \"\"\"Masked.\"\"\"
    s[h, m, n] = sum(q[h, m, d] * k[h, n, d], d)
    a[h, m, n] = where(n <= m, s[h, m, n] * rsqrt(f32(D)), -inf)
    mx[h, m] = max(a[h, m, n], n)
    p[h, m, n] = exp(a[h, m, n] - mx[h, m])
    l[h, m] = sum(p[h, m, n], n)
    o[h, m, e] = sum(p[h, m, n] * f32(v[h, n, e]), n)
    y[h, m, e] = o[h, m, e] / l[h, m]
    return y

tune(H=2, M=32, D=8)
check(H=2, M=13, D=4)
check(H=1, M=21, D=5)
"""
MATMUL = """
def matmul(x: f32[M, K], w: f32[K, N], b: f32[N]) -> f32[M, N]:
    \"\"\"Product.\"\"\"
    acc[m, n] = sum(x[m, k] * w[k, n], k)
    y[m, n] = relu(acc[m, n] + b[n])
    return y

tune(M=32, K=64, N=32)
check(M=5, K=9, N=3)
check(M=21, K=37, N=18)
"""
STARTS = {
    "causal": (
        "tile(h, size=1)",
        "tile(m, size=4)",
        "tile(n, size=8)",
        "place(h.outer, level=grid)",
        "place(m.outer, level=grid)",
        "fuse(l, into=o)",
        "online(mx, into=o)",
        "causal_bound(n, at=m)",
        "compute(s, unit=matrix)",
        "compute(o, unit=matrix)",
    ),
    "matmul": (
        "tile(m, size=4)",
        "tile(n, size=8)",
        "tile(k, size=8)",
        "place(m.outer, level=grid)",
        "split_k(acc, over=k, parts=2)",
        "compute(acc, unit=matrix)",
        "precision(acc, dtype=tf32x3)",
    ),
    "conv2d": (
        "flatten(p, inner=q)",
        "tile(pq, size=8)",
        "tile(c, size=4)",
        "tile(i, size=1)",
        "place(pq.outer, level=grid)",
        "compute(acc, unit=matrix)",
    ),
}
OTHERS = {"causal": parse_workload(CAUSAL, "causal"), "matmul": parse_workload(MATMUL, "matmul")}


def walk(spec: Spec, sizes, seed: int) -> Schedule:
    """A schedule some random legal edits away from the plain one, new verbs more likely."""
    rng = random.Random(seed)
    schedule = plain(spec, WITH_TF32, sizes)
    if spec.name in STARTS and seed % 3 != 1:
        schedule = canonical(decisions(spec, *STARTS[spec.name]))
    elif seed % 3 == 0:
        rest = tuple(d for d in schedule.decisions if d.verb != "kernel")
        schedule = _legal(spec, canonical(Schedule(spec.name, rest)), sizes) or schedule
    for _ in range(rng.randint(4, LONGEST_WALK)):
        found = neighbours(spec, schedule, WITH_TF32, sizes)
        verbs = sorted({(e.new or e.old).verb for e in found})
        verb = rng.choice([v for v in verbs for _ in range(3 if v in NEW else 1)])
        changed = rng.choice([e for e in found if (e.new or e.old).verb == verb]).apply(schedule)
        schedule = _legal(spec, changed, sizes) or schedule
    return schedule


def _legal(spec: Spec, schedule: Schedule, sizes) -> Schedule | None:
    try:
        lower(spec, schedule, WITH_TF32, sizes)
    except KernelError:
        return None
    return schedule


@pytest.mark.parametrize("seed", range(WALKS))
@pytest.mark.parametrize("name", [*KERNELS, *OTHERS])
def test_what_lowering_accepts_is_right_whatever_was_decided(name, seed):
    w = OTHERS[name] if name in OTHERS else workload(name)
    sizes = w.checks[1]
    schedule = walk(w.spec, sizes, seed)
    assert parse_schedule(str(schedule)) == schedule
    nest = lower(w.spec, schedule, WITH_TF32, sizes)
    inputs = random_inputs(w.spec, sizes, np.random.default_rng(5))
    expected = evaluate(w.spec, inputs, sizes)
    try:
        found = interpret(nest, inputs, sizes)
        for key, array in expected.items():
            np.testing.assert_allclose(found[key], array, 1e-10, 1e-10, err_msg=f"{key} at {sizes}")
    except AssertionError as fault:
        raise AssertionError(f"{schedule}\n{fault}") from fault


@pytest.mark.parametrize(
    "decided, parts",
    [
        (None, {2, 4, 8, 16, 32}),
        (512, {2, 4, 8, 16, 32, 64, 128, 256, 1024, 2048, 4096}),
        (2, {4, 8, 16, 32}),
    ],
)
def test_parts_of_a_sum_are_a_few_or_near_those_that_are_decided(decided, parts):
    spec = OTHERS["matmul"].spec
    lines = [line for line in STARTS["matmul"] if not line.startswith("split_k")]
    lines += [f"split_k(acc, over=k, parts={decided})"] if decided else []
    start = decisions(spec, *lines)
    edits = neighbours(spec, start, WITH_TF32, OTHERS["matmul"].checks[-1])
    made = [e.new for e in edits if e.new is not None and e.new.verb == "split_k"]
    assert sorted(int(d.option("parts")) for d in made) == sorted(parts)
