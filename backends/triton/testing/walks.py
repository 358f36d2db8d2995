"""Random walks for tests: schedules some random legal edits away from a start, and the error of the
emitted kernel's results."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import numpy as np

from backends.backend import BackendError, Built
from backends.triton.emit.spelling import templates
from backends.triton.emit.view import kernel_view
from backends.triton.interpret.interpreter import interpret
from ir.autoschedule.autoschedule import plain
from ir.edits.edits import Edit, neighbours
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.lower.verb_table import canonical
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.parse.parse import parse_workload
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate, evaluate_storage
from ir.reference.rounding import round_to
from ir.schedule import Schedule
from ir.spec import FLOATS, Spec, Tensor
from ir.workload import Sizes, Workload
from testing.samples.samples import KERNELS, decisions, workload

CAUSAL = '''
def causal(q: bf16[H, M, D], k: bf16[H, N, D], v: bf16[H, N, D]) -> bf16[H, M, D]:
    """Average values by how keys fit, over those up to each query's own place."""
    s[h, m, n] = sum(f32(q[h, m, d]) * f32(k[h, n, d]), d)
    a[h, m, n] = where(n <= m, s[h, m, n] * rsqrt(f32(D)), -inf)
    mx[h, m] = max(a[h, m, n], n)
    p[h, m, n] = exp(a[h, m, n] - mx[h, m])
    l[h, m] = sum(p[h, m, n], n)
    o[h, m, d] = sum(p[h, m, n] * f32(v[h, n, d]), n)
    y[h, m, d] = o[h, m, d] / l[h, m]
    return y

tune(H=2, M=64, N=64, D=16)
check(H=1, M=1, N=1, D=1)
check(H=2, M=21, N=37, D=5)
'''
PRODUCT = '''
def product(x: f32[M, K], w: f32[K, N], b: f32[N]) -> f32[M, N]:
    """Multiply, add, and cut off."""
    acc[m, n] = sum(x[m, k] * w[k, n], k)
    y[m, n] = relu(acc[m, n] + b[n])
    return y

tune(M=64, K=64, N=64)
check(M=5, K=9, N=3)
check(M=21, K=37, N=18)
'''
OTHERS = {"causal": CAUSAL, "product": PRODUCT}
STARTS = {
    "causal": (
        "tile(h, size=1)",
        "tile(m, size=8)",
        "tile(n, size=16)",
        "place(h.outer, level=grid)",
        "place(m.outer, level=grid)",
        "fuse(l, into=o)",
        "online(mx, into=o)",
        "causal_bound(n, at=m)",
        "compute(s, unit=matrix)",
        "compute(o, unit=matrix)",
        "precision(o, dtype=bf16)",
    ),
    "product": (
        "split_k(acc, over=k, parts=2)",
        "tile(m, size=16)",
        "tile(n, size=16)",
        "tile(k, size=8)",
        "place(m.outer, level=grid)",
        "compute(acc, unit=matrix)",
        "precision(acc, dtype=tf32x3)",
    ),
}
NAMES = (*KERNELS, *OTHERS)
LONGEST = 14  # edits of a walk
RARE = (
    "flatten",
    "split_k",
    "pack",
    "causal_bound",
    "precision",
    "kernel",
    "online",
    "fuse",
    "hoist",
    "rasterize",
    "persistent",
    "specialize",
    "unroll",
)
Outputs = Mapping[str, np.ndarray]
ELEMENT = 0.1  # share of a result's root mean square by which one element may be off


def walk(
    spec: Spec, machine: Machine, sizes: Mapping[str, int], seed: int, start: Schedule | None = None
) -> Schedule:
    """A schedule some edits away from `start`, or from the plain one; a third of all seeds merge
    its launches first. Rare kinds of edits are drawn as often as others."""
    rng = random.Random(seed)
    schedule = start or plain(spec, machine, sizes)
    if seed % 3 == 0:
        rest = tuple(d for d in schedule.decisions if d.verb != "kernel")
        schedule = _legal(spec, canonical(Schedule(spec.name, rest)), machine, sizes) or schedule
    for _ in range(rng.randint(4, LONGEST)):
        found = neighbours(spec, schedule, machine, sizes)
        verbs = sorted({_verb(e) for e in found})
        verb = rng.choice([v for v in verbs for _ in range(3 if v in RARE else 1)])
        edit = rng.choice([e for e in found if _verb(e) == verb])
        schedule = _legal(spec, edit.apply(schedule), machine, sizes) or schedule
    return schedule


def _verb(edit: Edit) -> str:
    decision = edit.new or edit.old
    assert decision is not None
    return decision.verb


def _legal(
    spec: Spec, schedule: Schedule, machine: Machine, sizes: Mapping[str, int]
) -> Schedule | None:
    try:
        lower(spec, schedule, machine, sizes)
    except KernelError:
        return None
    return schedule


def emitted(nest: LoopNest, machine: Machine, folder: Path) -> Built:
    """The emitted file of a nest, not compiled."""
    file = folder / "kernel.py"
    text = templates().render("kernel.py.j2", **kernel_view(nest, machine))
    file.write_text(text, encoding="utf-8")
    return Built(file)


def wrong(
    nest: LoopNest, machine: Machine, sizes: Mapping[str, int], folder: Path, order: int = 0
) -> str:
    """What is wrong with the interpreted results of a nest's emitted kernel; empty: nothing."""
    spec = nest.spec
    inputs = random_inputs(spec, sizes, np.random.default_rng(1))
    found = interpret(emitted(nest, machine, folder), nest, machine, sizes, inputs, order)
    exact, plain = evaluate(spec, inputs, sizes), evaluate_storage(spec, inputs, sizes)
    return "; ".join(_off(found, {t.name: _held(t, exact, plain) for t in spec.outputs}))


def _held(tensor: Tensor, exact: Outputs, plain: Outputs) -> tuple[np.ndarray, np.ndarray]:
    """An output in its own format, where large values may be infinite; and where any value is
    accepted: as for the judge, where plain arithmetic overflows before a result that the format can
    hold."""
    right, stored = (np.asarray(o[tensor.name], np.float64) for o in (exact, plain))
    if tensor.dtype not in FLOATS:
        return right, np.zeros(right.shape, bool)
    held, most = (round_to(a, tensor.dtype) for a in (right, np.array(np.finfo(np.float64).max)))
    # Some formats have a largest number instead of infinity, and one has NaN.
    right = np.where(np.isfinite(held), np.fmax(np.fmin(right, most), -most), held)
    return right, np.isfinite(exact[tensor.name]) & ~np.isfinite(stored) & (stored != right)


def _off(found: Outputs, known: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Iterator[str]:
    for name, (right, free) in known.items():
        got = np.asarray(found[name], np.float64)
        usual = right[np.isfinite(right)]
        size = np.sqrt(np.mean(usual**2)) if usual.size else 0.0
        with np.errstate(invalid="ignore"):
            near = np.abs(got - right) <= ELEMENT * size + ELEMENT / 2 * np.abs(right) + 1e-6
        same = (got == right) | np.isnan(got) & np.isnan(right)
        bad = ~np.where(np.isfinite(right), near, same) & ~free
        if bad.any():
            place = tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))
            yield (
                f"`{name}` has {int(bad.sum())} of {bad.size} elements wrong, the first at {place}: "
                f"{found[name][place]}, not {right[place]:g}"
            )


@cache
def case(name: str) -> Workload:
    """A workload of the library, or one defined above."""
    return parse_workload(OTHERS[name], name) if name in OTHERS else workload(name)


def refused(error: BackendError) -> bool:
    """Whether a backend rightly refuses what lowering accepts: TMA has no such boxes."""
    return error.stage == "emit" and "in bulk" in error.reason


def require_right(
    name: str, machine: Machine, seed: int, folder: Path, tuned: Sizes, sizes: Sizes
) -> None:
    """Runs a walk at some sizes, and its result at others. Raises AssertionError where it is wrong."""
    spec = case(name).spec
    start = canonical(decisions(spec, *STARTS[name])) if name in STARTS and seed % 2 else None
    schedule = walk(spec, machine, tuned, seed, start)
    try:
        fault = wrong(lower(spec, schedule, machine, tuned), machine, sizes, folder, seed)
    except BackendError as error:
        if refused(error):
            return
        raise AssertionError(f"{schedule}\n{error}") from error
    assert not fault, f"{schedule}\n{fault}"
