"""Golden texts of emitted kernels, one for each thing that emission knows how to do; each compiles
for the targets that it is meant for, and gives what the reference gives."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import pytest

from backends.backend import BackendError
from backends.registry import REGISTRY, target
from backends.triton.backend import Triton
from backends.triton.testing.walks import wrong
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.nest.nest import LoopNest
from ir.parse.parse import parse_schedule, parse_workload
from ir.workload import Workload
from testing.samples.samples import workload
from testing.slow import slow

BOTH = ("h200", "mi300")
CAUSAL = '''
def causal(q: bf16[H, M, D], k: bf16[H, N, D], v: bf16[H, N, D]) -> bf16[H, M, D]:
    """Average values by a softmax over the keys up to each query's own place."""
    s[h, m, n] = sum(f32(q[h, m, d]) * f32(k[h, n, d]), d)
    a[h, m, n] = where(n <= m, s[h, m, n] * rsqrt(f32(D)), -inf)
    mx[h, m] = max(a[h, m, n], n)
    p[h, m, n] = exp(a[h, m, n] - mx[h, m])
    l[h, m] = sum(p[h, m, n], n)
    o[h, m, d] = sum(p[h, m, n] * f32(v[h, n, d]), n)
    y[h, m, d] = o[h, m, d] / l[h, m]
    return y

tune(H=4, M=1024, N=1024, D=64)
check(H=2, M=300, N=300, D=16)
'''
PRODUCT = '''
def product(x: f32[M, K], w: f32[K, N]) -> f32[M, N]:
    """Multiply two matrices."""
    acc[m, n] = sum(x[m, k] * w[k, n], k)
    return acc

tune(M=512, K=1024, N=512)
check(M=65, K=131, N=67)
'''
EIGHT = '''
def eight(x: f8e4m3[M, K], w: f8e4m3[N, K]) -> bf16[M, N]:
    """Multiply two matrices of 8-bit floats, the second one by its rows."""
    acc[m, n] = sum(f32(x[m, k]) * f32(w[n, k]), k)
    return acc

tune(M=512, K=1024, N=512)
check(M=65, K=144, N=67)
'''
INTERLEAVED = '''
def interleaved(x: tf32[B, 3, Q, 32], w: tf32[2, 2, 32, 2, 2, 32], p: f32[32]) -> f32[B, 32, 2, 2, 20, 2]:
    """Convolve with the filters of all phases of a transposed convolution, and store them in place."""
    c[b, o, i, g, j, h] = sum(f32(x[b, i + r, j + s, k]) * f32(w[r, s, o, g, h, k]), k, r, s)
    y[b, o, i, g, j, h] = c[b, o, i, g, j, h] + p[o]
    return y

tune(B=64, Q=24)
check(B=3, Q=21)
'''
OTHERS = {"causal": CAUSAL, "product": PRODUCT, "eight": EIGHT, "interleaved": INTERLEAVED}


@dataclass(frozen=True)
class Case:
    """A kernel with a schedule, and for which targets it is emitted; the first one's text is
    the golden one."""

    kernel: str
    decisions: str
    targets: tuple[str, ...] = BOTH


ROWS = "tile(h, size=1)\ntile(m, size=128)\ntile(n, size=64)\n"
ON_GRID = "place(h.outer, level=grid)\nplace(m.outer, level=grid)\nplace(n.outer, level=loop)\n"
STREAMED = (
    "fuse(l, into=o)\nonline(mx, into=o)\n{}compute(s, unit=matrix)\ncompute(o, unit=matrix)\n"
    "precision(o, dtype=bf16)\npipeline(k, stages=2)\npipeline(v, stages=2)\n"
    "threads(y, count=256)"
)
TILES = (
    "tile(m, size=64)\ntile(n, size=64)\ntile(k, size=32)\nplace(m.outer, level=grid)\n"
    "place(n.outer, level=grid)\nplace(k.outer, level=loop)\n"
)
CASES = {
    "bulk_persistent": Case(
        "matmul_bias_gelu",
        """
        tile(m, size=128)
        tile(n, size=128)
        tile(k, size=64)
        place(m.outer, level=grid)
        place(n.outer, level=grid)
        place(k.outer, level=loop)
        compute(acc, unit=matrix)
        pipeline(x, stages=3)
        pipeline(w, stages=3)
        copy(x, by=bulk)
        copy(w, by=bulk)
        rasterize(m, size=8, over=n)
        threads(y, count=256)
        persistent(y, programs=1)
        """,
        ("h200",),
    ),
    "streamed": Case("attention", ROWS + ON_GRID + STREAMED.format("")),
    "causal": Case("causal", ROWS + ON_GRID + STREAMED.format("causal_bound(n, at=m)\n")),
    "unrolled": Case(
        "conv1d",
        """
        unroll(i)
        pack(w, order=i_o_c)
        pack(x, order=b_l_c)
        tile(b, size=1)
        tile(o, size=32)
        tile(l, size=64)
        tile(c, size=32)
        place(b.outer, level=grid)
        place(o.outer, level=grid)
        place(l.outer, level=grid)
        place(c.outer, level=loop)
        compute(acc, unit=matrix)
        """,
    ),
    "jagged": Case(
        "embedding_bag", "tile(b, size=1)\ntile(l, size=16)\nplace(b.outer, level=grid)"
    ),
    "scanned": Case(
        "cumsum",
        """
        tile(m, size=4)
        tile(k, size=256)
        place(m.outer, level=grid)
        place(k.outer, level=loop)
        """,
    ),
    "recurrent": Case(
        "lstm",
        """
        tile(t, size=4)
        tile(b, size=16)
        tile(j, size=16)
        tile(i, size=32)
        tile(k, size=32)
        place(t.outer, level=grid)
        place(b.outer, level=grid)
        place(j.outer, level=grid)
        place(i.outer, level=loop)
        place(k.outer, level=loop)
        fuse(ai, into=ao)
        fuse(af, into=ao)
        fuse(ag, into=ao)
        compute(gx, unit=matrix)
        compute(ai, unit=matrix)
        compute(af, unit=matrix)
        compute(ag, unit=matrix)
        compute(ao, unit=matrix)
        pipeline(wh, stages=2)
        """,
    ),
    "carried": Case(
        "ssm",
        """
        carry(h)
        tile(b, size=1)
        tile(d, size=64)
        place(b.outer, level=grid)
        place(d.outer, level=grid)
        pipeline(x, stages=3)
        pipeline(dt, stages=3)
        pipeline(wb, stages=3)
        pipeline(wc, stages=3)
        threads(y, count=128)
        """,
    ),
    "searched": Case(
        "map_id", "tile(b, size=64)\nplace(b.outer, level=grid)\nthreads(y, count=64)"
    ),
    "split_k": Case(
        "matmul_bias_gelu",
        "split_k(acc, over=k, parts=4)\n" + TILES + "compute(acc, unit=matrix)",
    ),
    "tf32x3": Case(
        "product",
        TILES
        + "compute(acc, unit=matrix)\nprecision(acc, dtype=tf32x3)\nkernel(acc_al)\nkernel(acc_bl)",
        ("h200",),
    ),
    "eight": Case("eight", TILES + "compute(acc, unit=matrix)", ("h200", "mi350")),
    "eight_bulk": Case(
        "eight",
        TILES
        + """
        compute(acc, unit=matrix)
        pipeline(x, stages=3)
        pipeline(w, stages=3)
        copy(x, by=bulk)
        copy(w, by=bulk)
        """,
        ("h200",),
    ),
    "interleaved": Case(
        "interleaved",
        """
        tile(b, size=4)
        tile(i, size=1)
        tile(j, size=16)
        tile(r, size=1)
        tile(s, size=1)
        place(b.outer, level=grid)
        place(i.outer, level=grid)
        place(j.outer, level=grid)
        place(r.outer, level=loop)
        place(s.outer, level=loop)
        compute(c, unit=matrix)
        pipeline(x, stages=3)
        pipeline(w, stages=3)
        copy(x, by=bulk)
        copy(w, by=bulk)
        threads(y, count=256)
        """,
        ("h200",),
    ),
    "eight_widened": Case(
        "eight",
        TILES + "compute(acc, unit=matrix)\nprecision(acc, dtype=bf16)",
        ("mi300",),
    ),
}
COMPILED = [  # each time for one of its targets, which take turns
    (pytest.param if number % len(case.targets) == turn else slow)(name, chip)
    for number, (name, case) in enumerate(CASES.items())
    for turn, chip in enumerate(case.targets)
]


@cache
def given(kernel: str) -> Workload:
    """A workload of the library, or one from above."""
    return parse_workload(OTHERS[kernel], kernel) if kernel in OTHERS else workload(kernel)


@cache
def nest(name: str, chip: str, checked: bool = False) -> LoopNest:
    """A case lowered for a target, for the sizes to tune for or the last ones to check."""
    case = CASES[name]
    work = given(case.kernel)
    lines = "\n".join(line.strip() for line in case.decisions.strip().splitlines())
    schedule = parse_schedule(f"schedule({work.spec.name})\n{lines}\n")
    return lower(work.spec, schedule, target(chip), work.checks[-1] if checked else work.tune)


@cache
def triton() -> Triton:
    return Triton(REGISTRY.manifest("triton"))


@cache
def text(name: str, chip: str) -> str:
    return triton().emit(nest(name, chip), target(chip))


@pytest.mark.parametrize("name", CASES)
def test_an_emitted_kernel_is_the_golden_one(name, golden):
    golden(f"backends/triton/golden/{name}.py", text(name, CASES[name].targets[0]))


@pytest.mark.parametrize(("name", "chip"), COMPILED)
def test_a_golden_kernel_compiles_without_spills(name, chip, tmp_path):
    machine, made = target(chip), nest(name, chip)
    figures = triton().build(text(name, chip), made, machine, tmp_path).figures
    assert figures["spills"] == 0
    assert figures["occupancy"] > 0


@pytest.mark.parametrize("name", CASES)
def test_a_golden_kernel_gives_what_the_reference_gives(name, tmp_path):
    chip = CASES[name].targets[0]
    machine, made = target(chip), nest(name, chip, checked=True)
    sizes = given(CASES[name].kernel).checks[-1]
    assert wrong(made, machine, sizes, tmp_path) == ""


def test_what_is_emitted_does_not_depend_on_the_sizes_to_tune_for():
    """Sizes are arguments: a schedule's text is the same, so one file serves all shapes."""
    chip = "h200"
    small = triton().emit(nest("streamed", chip, checked=True), target(chip))
    assert small == text("streamed", chip)


def test_a_text_imports_nothing_but_torch_and_triton():
    for name, case in CASES.items():
        lines = text(name, case.targets[0]).splitlines()
        modules = {ln.split()[1].split(".")[0] for ln in lines if ln.startswith(("import", "from"))}
        assert modules <= {"torch", "triton"}, name


def test_what_a_bulk_copy_cannot_move_is_refused():
    """A tile of 48 is held in 64, so its box would be none of the tile's."""
    work, machine = workload("softmax"), target("h200")
    lines = "tile(m, size=4)\ntile(k, size=48)\nplace(m.outer, level=grid)\n"
    lines += "place(k.outer, level=loop)\npipeline(x, stages=2)\ncopy(x, by=bulk)\n"
    schedule = parse_schedule(f"schedule(softmax)\n{lines}")
    with pytest.raises((BackendError, KernelError), match="`x` cannot be moved in bulk|box"):
        triton().emit(lower(work.spec, schedule, machine, work.tune), machine)
