"""What a kernel's text shows is what the nest says that it was made from."""

import pytest

from backends.backend import CountsSource
from backends.registry import backend, target
from backends.triton.static import static_figures
from ir.autoschedule.autoschedule import autoschedule, plain
from ir.estimate.kernel_features import kernel_features
from ir.lower.lower import lower
from ir.parse.parse import parse_workload
from ir.workload import LIBRARY

KERNELS = sorted(p.stem for p in LIBRARY.glob("*.kir"))
HEAD = """import triton
import triton.language as tl


"""
BY_HAND = (
    HEAD
    + """@triton.autotune(configs=[], key=[])
@triton.jit
def norm(x_ptr, w_ptr, y_ptr, M, K, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    xs = x_ptr + row * K
    for at in range(0, K, BLOCK):
        x = tl.load(xs + at + offs)
        total += x * x
    scale = tl.rsqrt(tl.sum(total, 0) / K)
    for at in range(0, K, BLOCK):
        again = tl.load(xs + at + offs)
        tl.store(y_ptr + row * K + at + offs, again * scale * tl.load(w_ptr + at + offs))
    xs += BLOCK


@triton.jit
def unused(x_ptr):
    tl.store(x_ptr, tl.sum(tl.load(x_ptr), 0))


def launch(x, w, y):
    norm[(4,)](x, w, y, 4, 128, BLOCK=64, num_stages=3)
"""
)
PRODUCT = (
    HEAD
    + """@triton.jit
def matmul(a_desc, b_ptr, c_ptr, K: tl.constexpr):
    acc = tl.zeros((64, 64), dtype=tl.float32)
    for k in tl.range(0, K, 32, num_stages=4):
        a = a_desc.load([0, k])
        b = tl.load(b_ptr + (k + tl.arange(0, 32))[:, None] + tl.arange(0, 64)[None, :])
        acc = tl.dot(a, tl.trans(b), acc)
    tl.atomic_add(c_ptr, acc)
"""
)


def nests():
    for name in KERNELS:
        for chip in ("h200", "mi300"):
            for first in (autoschedule, plain):
                yield pytest.param(name, chip, first, id=f"{name}-{chip}-{first.__name__}")


@pytest.mark.parametrize("name, chip, first", list(nests()))
def test_an_emitted_text_shows_what_its_nest_says(name, chip, first):
    machine = target(chip)
    found = parse_workload((LIBRARY / f"{name}.kir").read_text(encoding="utf-8"))
    schedule = first(found.spec, machine, found.tune)
    nest = lower(found.spec, schedule, machine, found.tune)
    said = kernel_features(nest, machine, found.tune)
    seen = backend("triton").static_figures(backend("triton").emit(nest, machine))
    kinds = ("collectives", "atomics", "barriers", "matrix_share")
    assert {k: seen[k] > 0 for k in kinds} == {k: said[k] > 0 for k in kinds}
    assert (seen["passes"] > 1) == (said["passes"] > 1)
    if name != "max_pool2d":  # where a window is written out, maxima by element carry nothing
        assert (seen["carried"] > 0) == (said["carried"] > 0)


def test_the_backend_counts_sources():
    assert isinstance(backend("triton"), CountsSource)


def test_a_text_by_hand_is_counted_by_what_it_does():
    assert static_figures(BY_HAND) == {
        "reused": 0.0,
        "ahead": 1.0,  # its launch asks for stages, and all its loads are in loops
        "passes": 2.0,  # x is gone through twice
        "carried": 1.0,  # the sum; an address that moves on is none
        "matrix_share": 0.0,
        "barriers": 0.0,
        "collectives": 1.0,
        "atomics": 0.0,
    }


def test_products_accumulate_and_their_operands_lie_in_shared_memory():
    found = static_figures(PRODUCT)
    assert (found["matrix_share"], found["carried"], found["barriers"]) == (1.0, 1.0, 2.0)
    assert (found["reused"], found["ahead"], found["atomics"]) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize("text", ["", "def f(:", "x = 1\n", "\0"])
def test_what_is_no_kernel_shows_nothing(text):
    assert static_figures(text) == {}
