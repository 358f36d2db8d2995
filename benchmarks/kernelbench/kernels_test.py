"""Tests that a kernel whose text does not build is built in another way, and that its note says
why."""

import json

import pytest

from backends.registry import backend_for, target
from benchmarks.kernelbench.kernels import NOTE, BuiltKernel, BuiltKernels, KernelBuild, build
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule, parse_spec

SPEC = '''
def product(x: f16[64, 128], w: f16[128, 64]) -> f32[64, 64]:
    """A matmul."""
    y[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)
    return y
'''
SCHEDULE = """
schedule(product)
tile(k, size=32)
place(k.outer, level=loop)
compute(y, unit=matrix)
pipeline(x, stages=3)
pipeline(w, stages=3)
"""
BROKEN = "import os\n"  # Rejected by the admission check.


def job(folder, source):
    return KernelBuild(SPEC, SCHEDULE, source, "h200", "triton", folder)


@pytest.mark.parametrize("broken", [False, True])
def test_what_does_not_build_is_built_without_stages(tmp_path, broken):
    machine = target("h200")
    nest = lower(parse_spec(SPEC), parse_schedule(SCHEDULE), machine, {})
    one = job(tmp_path, BROKEN if broken else backend_for(machine).emit(nest, machine))
    assert build(one) == ""
    table = json.loads((tmp_path / NOTE).read_text())
    assert table["how"] == ("unstaged" if broken else "scheduled")
    kernels = BuiltKernels({"product": BuiltKernel(one, table)})
    assert kernels.plain == (["product"] if broken else [])
    if broken:
        (fault,) = kernels.faults["product"]
        assert fault.startswith("scheduled: ") and "os" in fault
        text = (tmp_path / table["file"]).read_text()
        assert "num_stages=3" not in text and "tl.dot" in text
