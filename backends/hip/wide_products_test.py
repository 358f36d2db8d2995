"""Matmuls that are not summed in f32: of i8 in i32, exactly, and of f64, by their own matrix instructions, in
both orders of work-items and by the interpreter of thread programs."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from backends.backend import BackendError
from backends.gpu.threads.interpreter.faults import ThreadFault
from backends.gpu.threads.interpreter.interpret import interpret
from backends.hip.backend import program, spelled
from backends.hip.instructions import instructions
from backends.hip.testing.samples import backend, machine_of
from backends.measure import check, compare, reference
from backends.parameters import parameters
from backends.shared.arrays import from_device, poisoned, to_device
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule, parse_workload
from ir.sizes import bind

SPECS = {  # operands, result, contraction
    "i8": ("i8", "i32", "i32(x[m, k]) * i32(w[k, n])"),
    "f64": ("f64", "f64", "x[m, k] * w[k, n]"),
}
FUNCTIONS = {  # MFMA for a tile of 32 x 32 x 64
    ("i8", "mi300"): ("mfma_16x16x32(", "v_mfma_i32_16x16x32_i8"),
    ("i8", "mi350"): ("mfma_16x16x64(", "v_mfma_i32_16x16x64_i8"),
    ("f64", "mi300"): ("mfma_16x16x4(", "v_mfma_f64_16x16x4_f64"),
    ("f64", "mi350"): ("mfma_16x16x4(", "v_mfma_f64_16x16x4_f64"),
}
TILES = (
    "schedule(f)\ntile(m, size=32)\ntile(n, size=32)\ntile(k, size=64)\nplace(m.outer, level=grid)\n"
    "place(n.outer, level=grid)\nplace(k.outer, level=loop)\ncompute(y, unit=matrix)\n"
    "pipeline(x, stages=2)\npipeline(w, stages=2)\nthreads(y, count=256)\n"
)


def work_of(dtype):
    operand, result, each = SPECS[dtype]
    return parse_workload(
        f"def f(x: {operand}[M, K], w: {operand}[K, N]) -> {result}[M, N]:\n"
        f'    """Multiply two matrices."""\n    y[m, n] = sum({each}, k)\n    return y\n'
        "tune(M=128, K=256, N=128)\ncheck(M=33, K=70, N=40)\ncheck(M=64, K=128, N=64)\n",
        "f",
    )


def lowered(dtype, machine, lines=TILES):
    work = work_of(dtype)
    return lower(work.spec, parse_schedule(lines), machine, work.tune)


@pytest.mark.parametrize(("dtype", "target"), FUNCTIONS)
def test_a_matmul_is_right_by_its_own_instruction(dtype, target, tmp_path):
    machine, work = machine_of(target), work_of(dtype)
    nest, (function, instruction) = lowered(dtype, machine), FUNCTIONS[dtype, target]
    source = backend().emit(nest, machine)
    assert function in source
    built = backend().build(source, nest, machine, tmp_path)
    assert built.figures["spills"] == 0
    (text,) = (f.read_text(encoding="utf-8") for f in tmp_path.glob("*.s"))
    assert instruction in text
    for sizes in work.checks:
        check(backend(), built, nest, machine, work.spec, sizes, seed=3)


def interpreted(dtype, of_launch=lambda launch: launch):
    machine, work = machine_of("mi350"), work_of(dtype)
    nest, sizes = lowered(dtype, machine), work.checks[0]
    made, bound, known = (
        program(spelled(nest), machine),
        bind(nest.spec, sizes),
        reference(nest.spec, sizes, 7),
    )
    (launch,) = made.launches
    made = replace(made, groups=((None, (of_launch(launch),)),))
    held = {
        p.name: to_device(known.inputs[p.name], p.dtype)
        if p.role == "input"
        else poisoned(p, bound)
        for p in parameters(nest)
    }
    interpret(made, sizes, held, instructions(machine), machine.on_chip_bytes)
    compare(nest.spec, sizes, "y", from_device(held["y"], nest.spec.outputs[0].dtype), known)


@pytest.mark.parametrize("dtype", SPECS)
def test_the_thread_program_is_right(dtype):
    interpreted(dtype)


@pytest.mark.parametrize("dtype", SPECS)
def test_a_wrong_layout_of_the_thread_program_is_found(dtype):
    """The result's columns as those of the next wavefront."""

    def wrong(launch):
        def moved(f):
            if f.name.stem != "y":
                return f
            row, column = f.axes
            return replace(
                f, axes=(replace(column, index=row.index), replace(row, index=column.index))
            )

        return replace(launch, fragments=tuple(map(moved, launch.fragments)))

    with pytest.raises((ThreadFault, AssertionError)) as seen:
        interpreted(dtype, wrong)
    assert getattr(seen.value, "kind", "wrong fragment") in ("wrong fragment", "out of bounds")


@pytest.mark.parametrize("dtype", SPECS)
def test_operands_that_are_exchanged_are_found_by_the_emulator(dtype, tmp_path):
    machine, work = machine_of("mi300"), work_of(dtype)
    nest = lowered(dtype, machine)
    source = backend().emit(nest, machine)
    tile = re.search(r"&?x_tile\[[^;]*?thread % 16", source)
    assert tile is not None
    planted = source.replace(tile[0], tile[0].replace("thread % 16", "(thread + 1) % 16"))
    built = backend().build(planted, nest, machine, tmp_path)
    with pytest.raises((BackendError, AssertionError, KernelError)):
        check(backend(), built, nest, machine, work.spec, work.checks[1], seed=3)


def test_sums_of_i8_are_exact_where_f32_would_round(tmp_path):
    """4,099 products of 127 * 127 are an odd number of more than f32's 24 bits."""
    machine = machine_of("mi300")
    nest = lowered("i8", machine)
    built = backend().build(backend().emit(nest, machine), nest, machine, tmp_path)
    sizes = {"M": 3, "K": 4099, "N": 5}
    x, w = np.full((3, 4099), 127, np.int8), np.full((4099, 5), -127, np.int8)
    w[0] = 1
    found = backend().run(built, nest, machine, sizes, {"x": x, "w": w})["y"]
    np.testing.assert_array_equal(found, x.astype(np.int64) @ w.astype(np.int64))
    assert int(np.float32(found[0, 0])) != found[0, 0]


@pytest.mark.parametrize("target", ["mi300", "mi350"])
def test_the_peak_of_i8_changes_no_estimate_of_floats(target):
    machine = machine_of(target)
    matrix = machine.units["matrix"]
    without = {d: v for d, v in matrix.flops.items() if d != "i8"}
    plain = replace(machine, units={**machine.units, "matrix": replace(matrix, flops=without)})
    nest, sizes = lowered("f64", machine), work_of("f64").tune
    quick = [m.model.quick_us(nest, m, sizes) for m in (machine, plain)]
    assert quick[0] == quick[1]
