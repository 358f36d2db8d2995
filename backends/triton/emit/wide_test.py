"""Positions of 64 bits where a tensor needs them, and nowhere else."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from backends.gpu.wide import wide_tensors
from backends.registry import target
from backends.triton.testing.walks import emitted, wrong
from ir.lower.lower import lower
from testing.samples.samples import decisions, spec_of, workload

H200 = target("h200")
LARGE = {"M": 2**16, "K": 2**15}
HUGE = {"M": 2**17, "K": 2**15}
SMALL = {"M": 21, "K": 40}
ROWS = (
    "tile(m, size=4)",
    "place(m.outer, level=grid)",
    "tile(k, size=16)",
    "place(k.outer, level=loop)",
)


def made(spec, *lines, sizes):
    return lower(spec, decisions(spec, *lines), H200, sizes)


def text(nest, folder) -> str:
    return emitted(nest, H200, folder).file.read_text()


def test_positions_of_a_wide_tensor_are_multiplied_in_64_bits(tmp_path):
    spec = spec_of("s[m] = sum(x[m, k], k)", "y[m, k] = x[m, k] + s[m]")
    large = text(made(spec, *ROWS, sizes=LARGE), tmp_path)
    assert "x_ptr + tl.cast(offs_m[:, None], tl.int64) * K + offs_k[None, :]" in large
    assert (
        "for tensor in (x, y):\n        if not tensor.is_contiguous() or max(tensor.shape)" in large
    )
    small = text(made(spec, *ROWS, sizes=SMALL), tmp_path)
    assert "int64" not in small and "for tensor in (x, y):\n" in small


@pytest.mark.parametrize("sizes, right", [(HUGE, True), (SMALL, False)])
def test_the_last_element_is_where_it_lies(sizes, right, tmp_path):
    """The emitted sum, worked out in numbers as wide as the device has them."""
    spec = spec_of("s[m] = sum(x[m, k], k)", "y[m, k] = x[m, k] + s[m]")
    found = re.search(r"x_ptr \+ .*\]", text(made(spec, *ROWS, sizes=sizes), tmp_path))[0]
    tl = SimpleNamespace(cast=lambda x, dtype: x.astype(dtype), int64=np.int64)
    last = {f"offs_{i.lower()}": np.array([n - 1], np.int32) for i, n in HUGE.items()}
    at = eval(found, {"tl": tl, "x_ptr": np.int64(0), "K": np.int32(HUGE["K"]), **last})
    assert (at.item() == 2**32 - 1) == right


def test_only_what_is_wide_is(tmp_path):
    sizes = {"M": 2**16, "N": 2**15, "K": 64}
    lines = (
        "tile(m, size=64)",
        "place(m.outer, level=grid)",
        "tile(n, size=64)",
        "place(n.outer, level=grid)",
        "compute(acc, unit=matrix)",
    )
    found = text(made(workload("matmul_bias_gelu").spec, *lines, sizes=sizes), tmp_path)
    assert found.count("int64") == 1 and "y_ptr + tl.cast(offs_m[:, None], tl.int64) * N" in found
    assert "for tensor in (x, w, b):\n" in found and "for tensor in (y,):\n" in found


@pytest.mark.parametrize(
    "kernel, sizes, lines",
    [
        ("softmax", LARGE, ROWS),
        ("softmax", LARGE, ("tile(m, size=1)", ROWS[1])),
        (
            "conv1d",
            {"B": 2**17, "C": 64, "O": 64, "L": 256},
            (
                "unroll(i)",
                "tile(b, size=1)",
                "tile(l, size=32)",
                "tile(c, size=16)",
                "place(b.outer, level=grid)",
                "place(l.outer, level=grid)",
                "place(c.outer, level=loop)",
            ),
        ),
        (
            "conv2d",
            {"B": 2**15, "C": 16, "O": 16, "H": 64, "W": 64},
            (
                "tile(b, size=1)",
                "tile(p, size=2)",
                "tile(i, size=1)",
                "tile(j, size=1)",
                "place(b.outer, level=grid)",
                "place(p.outer, level=grid)",
                "place(i.outer, level=loop)",
                "place(j.outer, level=loop)",
            ),
        ),
        (
            "embedding_bag",
            {"V": 2**26, "D": 64, "L": 2**20, "B": 2**12},
            (
                "tile(b, size=1)",
                "place(b.outer, level=grid)",
                "tile(l, size=16)",
                "place(l.outer, level=loop)",
            ),
        ),
    ],
)
def test_kernels_with_wide_positions_are_right_at_small_sizes(kernel, sizes, lines, tmp_path):
    work = workload(kernel)
    nest = made(work.spec, *lines, sizes=sizes)
    assert wide_tensors(nest)
    assert wrong(nest, H200, work.checks[1], tmp_path) == ""
