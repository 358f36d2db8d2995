"""Matmuls of 8 bits by mma.sync and wgmma: of integers, exactly, and of floats; the text is right thread by
thread, and so is the thread program."""

from __future__ import annotations

import re
import subprocess

import numpy as np
import pytest

from backends.cuda.testing.emulation import emulated, machine_of
from backends.cuda.testing.samples import backend
from backends.gpu.cubins.code import cuobjdump
from backends.measure import compare, reference
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule, parse_workload
from testing.slow import slow, slow_but

WARPS = (  # a warp has 16 x 16 of 32 x 64: too few rows for wgmma
    "schedule(f)\ntile(m, size=32)\ntile(n, size=64)\ntile(k, size=64)\nplace(m.outer, level=grid)\n"
    "place(n.outer, level=grid)\nplace(k.outer, level=loop)\ncompute(y, unit=matrix)\n"
    "pipeline(x, stages=2)\npipeline(w, stages=2)\nthreads(y, count=128)\n"
)
LARGE = WARPS.replace("size=32", "size=64")
FIRST, WARPGROUP = ("i8", "k, n", "a100", WARPS), ("i8", "n, k", "h200", LARGE)
FLOATS = ("f8e4m3", "k, n", "h200", WARPS)
CASES = {  # operands, order of the second one, target, schedule: the function and what SASS has
    ("i8", "k, n", "a100", WARPS): ("mma_m16n8k32(", "IMMA.16832.S8.S8"),
    ("i8", "n, k", "a100", LARGE): ("mma_m16n8k32(", "IMMA.16832.S8.S8"),
    ("i8", "k, n", "h200", WARPS): ("mma_m16n8k32(", "IMMA.16832.S8.S8"),
    ("i8", "k, n", "h200", LARGE): ("wgmma<64", "IGMMA.64x64x32.S8.S8"),
    ("i8", "n, k", "h200", LARGE): ("wgmma<64", "IGMMA.64x64x32.S8.S8"),
    ("f8e4m3", "k, n", "h200", WARPS): ("mma_m16n8k32(", "QMMA|HMMA"),
    ("f8e5m2", "n, k", "h200", WARPS): ("mma_m16n8k32(", "QMMA|HMMA"),
}


def work_of(dtype, second="k, n"):
    wide = "i32" if dtype == "i8" else "f32"
    return parse_workload(
        f"def f(x: {dtype}[M, K], w: {dtype}[{second.upper()}]) -> {wide}[M, N]:\n"
        f'    """Multiply two matrices."""\n'
        f"    y[m, n] = sum({wide}(x[m, k]) * {wide}(w[{second}]), k)\n    return y\n"
        "tune(M=128, K=256, N=128)\ncheck(M=33, K=70, N=40)\ncheck(M=64, K=128, N=64)\n",
        "f",
    )


@pytest.mark.parametrize(
    "case",
    slow_but(lambda case: case in (FIRST, WARPGROUP, FLOATS), CASES),
    ids=lambda c: f"{c[0]}-{c[1]}-{c[2]}-{c[3][25:27]}",
)
def test_a_matmul_is_right_by_its_own_instruction(case, tmp_path):
    dtype, second, target, schedule = case
    work, machine = work_of(dtype, second), machine_of(target)
    nest, (function, instruction) = (
        lower(work.spec, parse_schedule(schedule), machine, work.tune),
        CASES[case],
    )
    source = backend().emit(nest, machine)
    assert function in source
    built = backend().build(source, nest, machine, tmp_path)
    assert built.figures["spills"] == 0
    (image,) = tmp_path.glob("*.cubin")
    words = [str(cuobjdump()), "-sass", str(image)]
    sass = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert re.search(instruction, sass)
    for sizes in work.checks:
        known = reference(nest.spec, sizes, 3)
        found = emulated(source, nest, machine, sizes, known.inputs, tmp_path)
        compare(nest.spec, sizes, "y", found["y"], known)
        backend()._interpreted(nest, machine, sizes, known.inputs)


@pytest.mark.parametrize("target", [slow("a100"), "h200"])
def test_sums_of_i8_are_exact_where_f32_would_round(target, tmp_path):
    """4,099 products of 127 * 127 are an odd number of more than f32's 24 bits."""
    machine, work = machine_of(target), work_of("i8")
    nest = lower(work.spec, parse_schedule(LARGE), machine, work.tune)
    sizes = {"M": 3, "K": 4099, "N": 5}
    x, w = np.full((3, 4099), 127, np.int8), np.full((4099, 5), -127, np.int8)
    w[0] = 1
    wanted = x.astype(np.int64) @ w.astype(np.int64)
    source = backend().emit(nest, machine)
    found = emulated(source, nest, machine, sizes, {"x": x, "w": w}, tmp_path)["y"]
    np.testing.assert_array_equal(found, wanted)
    assert int(np.float32(found[0, 0])) != found[0, 0]


def test_operands_in_another_order_are_found_by_the_emulator(tmp_path):
    machine, work = machine_of("a100"), work_of("i8")
    nest = lower(work.spec, parse_schedule(WARPS), machine, work.tune)
    source = backend().emit(nest, machine)
    call = re.search(r"mma_m16n8k32\((.*?)\);", source, re.DOTALL)
    assert call is not None
    words = [w.strip() for w in call[1].split(",")]
    words[4], words[8] = words[8], words[4]  # rows 0 and 8 of A
    planted = source.replace(call[0], f"mma_m16n8k32({', '.join(words)});")
    known = reference(nest.spec, work.checks[1], 3)
    found = emulated(planted, nest, machine, work.checks[1], known.inputs, tmp_path)
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal(found["y"], known.inputs["x"].astype(int) @ known.inputs["w"])
