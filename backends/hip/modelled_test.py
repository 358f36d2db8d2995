"""The modelled times of large kernels on mi300, as in docs/hip.md."""

from __future__ import annotations

import pytest

from backends.hip.testing.samples import backend, machine_of
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule, parse_workload
from ir.workload import LIBRARY

MI300 = machine_of("mi300")
SIDE = 8192
TILES = (
    "tile(m, size=128)\ntile(n, size=128)\ntile(k, size=64)\nplace(m.outer, level=grid)\n"
    "place(n.outer, level=grid)\nplace(k.outer, level=loop)\ncompute(acc, unit=matrix)\n"
    "pipeline(x, stages=2)\npipeline(w, stages=2)\nthreads(y, count=256)"
)
ROWS = "tile(m, size=1)\nplace(m.outer, level=grid)\nthreads(y, count=256)"


def seconds(kernel, decisions, folder):
    """For a kernel of the library with sides of 8192, which does not spill."""
    work = parse_workload((LIBRARY / f"{kernel}.kir").read_text(encoding="utf-8"), kernel)
    sizes = dict.fromkeys(work.tune, SIDE)
    schedule = parse_schedule(f"schedule({kernel})\n{decisions}\n")
    nest = lower(work.spec, schedule, MI300, sizes)
    built = backend().build(backend().emit(nest, MI300), nest, MI300, folder)
    timed = backend().time(built, nest, MI300, sizes, {})
    assert timed.kind == "modelled" and built.figures["spills"] == 0
    return timed.us * 1e-6


def test_a_large_matmul_has_most_of_the_matrix_peak(tmp_path):
    share = 2 * SIDE**3 / seconds("matmul_bias_gelu", TILES, tmp_path)
    assert 0.6 < share / MI300.units["matrix"].flops["bf16"] < 1


@pytest.mark.parametrize("kernel", ["softmax", "layer_norm"])
def test_rows_have_most_of_the_bandwidth(kernel, tmp_path):
    share = 2 * 4 * SIDE**2 / seconds(kernel, ROWS, tmp_path)
    assert 0.8 < share / MI300.spaces["global"].bytes_per_second < 1
