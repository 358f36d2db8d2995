"""What is rewritten can be scheduled, lowered and computed on machines of each kind."""

import numpy as np
import pytest

from backends.registry import target
from ir.autoschedule.autoschedule import autoschedule
from ir.edits.edits import neighbours
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule
from ir.reference.inputs import random_inputs
from ir.reference.interpret import interpret
from ir.reference.reference import evaluate
from ir.rewrites import REWRITES
from ir.rewrites.cases import CASES
from ir.rewrites.small_specs import WORKLOADS, spec_of
from ir.sizes import free_sizes
from testing.slow import in_turn

MACHINES = {name: target(name) for name in ("npu", "h200")}
SIZES = {"M": 5, "K": 300, "J": 7}
TIGHT = ("attention/inline_pointwise", "attention/sink_factor")  # on which a machine has no room


def require_same(before, after, machine, tuned, sizes):
    """What is rewritten, scheduled for some sizes and run at others, gives the same results."""
    nest = lower(after, autoschedule(after, machine, tuned), machine, tuned)
    inputs = random_inputs(before, sizes, np.random.default_rng(3))
    found = interpret(nest, inputs, sizes)
    with np.errstate(invalid="ignore"):
        for name, array in evaluate(before, inputs, sizes).items():
            np.testing.assert_allclose(found[name], array, 1e-7, 1e-7, err_msg=name)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}: {case[3]}")
def test_each_rewrite_computes_the_same(case, machine):
    name, signature, result, lines, _ = case
    spec = spec_of(lines, signature, result)
    sizes = {n: SIZES[n] for n in free_sizes(spec)}
    for other in REWRITES[name](spec):
        require_same(spec, other, MACHINES[machine], sizes, sizes)


@pytest.mark.parametrize(("kernel", "machine"), in_turn(WORKLOADS, MACHINES))
def test_the_librarys_kernels_compute_the_same(kernel, machine):
    w = WORKLOADS[kernel]
    tried = 0
    for name, rewrite in REWRITES.items():
        for other in rewrite(w.spec)[:1]:
            try:
                require_same(w.spec, other, MACHINES[machine], w.tune, w.checks[1])
            except KernelError:
                assert f"{kernel}/{name}" in TIGHT
            tried += 1
    assert tried


# What is on the list of rewrites and is decided by the schedule instead.
BY_VERB = {
    "a running maximum": (
        "npu",
        "mx[m] = max(x[m, k], k); e[m, k] = exp(x[m, k] - mx[m]); s[m] = sum(e[m, k], k); "
        "y[m, k] = e[m, k] / s[m]",
        "x: f32[M, K]",
        "f32[M, K]",
        "tile(k, size=64)\nplace(k.outer, level=loop)",
        "online(mx, into=s)",
    ),
    "a factor applied to the sum": (
        "npu",
        "r[m] = rsqrt(c[m]); n[m, k] = x[m, k] * r[m]; t[m] = sum(n[m, k], k); y[m] = t[m] * 2.0",
        "x: f32[M, K], c: f32[M]",
        "f32[M]",
        "",
        "hoist(r, into=y)",
    ),
    "a sum in parts": (
        "h200",
        "y[m] = sum(x[m, k], k)",
        "x: f32[M, K]",
        "f32[M]",
        "tile(k, size=64)\nplace(k.outer, level=loop)",
        "split_k(y, over=k, parts=4)",
    ),
    "a product of f32 as three": (
        "h200",
        "y[m, j] = sum(x[m, k] * w[k, j], k)",
        "x: f32[M, K], w: f32[K, J]",
        "f32[M, J]",
        "compute(y, unit=matrix)",
        "precision(y, dtype=tf32x3)",
    ),
    "an input in another layout": (
        "h200",
        "y[m, j] = sum(x[m, k] * w[k, j], k)",
        "x: f32[M, K], w: f32[K, J]",
        "f32[M, J]",
        "",
        "pack(w, order=j_k)",
    ),
    "a product of three in the other order": (
        "h200",
        "t[k, j] = sum(x[i, k] * z[i, j], i); y[m, j] = sum(x[m, k] * t[k, j], k)",
        "x: f32[M, K], z: f32[M, K]",
        "f32[M, K]",
        "",
        "associate(t)",
    ),
}


@pytest.mark.parametrize("what", BY_VERB)
def test_a_verb_reaches(what):
    machine, lines, signature, result, first, verb = BY_VERB[what]
    spec = spec_of(lines, signature, result)
    sizes = {n: SIZES[n] for n in free_sizes(spec)}
    schedule = parse_schedule(f"schedule(s)\n{first}\n")
    found = neighbours(spec, schedule, MACHINES[machine], sizes)
    assert verb in [str(edit.new) for edit in found if edit.old is None]


@pytest.mark.parametrize("machine", MACHINES)
def test_a_maximum_that_was_taken_off_can_run_along_with_the_sum(machine):
    naive = spec_of(
        "e[m, k] = exp(x[m, k]); s[m] = sum(e[m, k], k); y[m, k] = e[m, k] / s[m]",
        "x: f32[M, K]",
        "f32[M, K]",
    )
    (safe,) = REWRITES["subtract_maximum"](naive)
    lines = "tile(m, size=1)\nplace(m.outer, level=grid)\ntile(k, size=64)\n"
    lines += "place(k.outer, level=loop)\nonline(e_max, into=s)\n"
    sizes = {"M": 5, "K": 300}
    nest = lower(safe, parse_schedule(f"schedule(s)\n{lines}"), MACHINES[machine], sizes)
    inputs = random_inputs(naive, sizes, np.random.default_rng(4))
    found = interpret(nest, inputs, sizes)["y"]
    np.testing.assert_allclose(found, evaluate(naive, inputs, sizes)["y"], 1e-9, 1e-12)
