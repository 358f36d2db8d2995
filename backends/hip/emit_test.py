"""Golden texts of emitted kernels: each compiles without spills for gfx942 and gfx950, and gives by
emulator and by interpreter what the reference gives."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backends.backend import BackendError
from backends.gpu.source.names import known_sizes
from backends.gpu.threads.interpreter.interpret import interpret
from backends.hip.admission import ADMISSION
from backends.hip.backend import Hip, program, spelled
from backends.hip.instructions import instructions
from backends.hip.testing.samples import CASES, backend, emitted, machine_of, nest_of, work_of
from backends.measure import check, compare, reference
from backends.parameters import parameters
from backends.shared.arrays import from_device, poisoned, to_device
from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule, parse_workload
from ir.sizes import bind
from testing.slow import in_turn, slow

DENSE = ("staged", "ring", "streamed", "packed", "taps", "direct", "scaled")
SHOWN = {"scaled": "mi350"}  # target of the golden text, if not mi300


@pytest.mark.parametrize("name", CASES)
def test_an_emitted_kernel_is_the_golden_one(name, golden):
    golden(f"backends/hip/golden/{name}.hip", emitted(name, SHOWN.get(name, "mi300")))


@pytest.mark.parametrize(("name", "target"), in_turn(CASES, ["mi300", "mi350"]))
def test_an_emitted_kernel_compiles_without_spills_and_is_right(name, target, tmp_path):
    machine, nest, work = machine_of(target), nest_of(name, target), work_of(name)
    built = backend().build(emitted(name, target), nest, machine, tmp_path)
    launch = nest.launches[0].name
    assert built.figures["spills"] == 0 and built.figures[f"{launch}.vector_spills"] == 0
    assert 0 < built.figures["registers"] <= 512 and built.figures["occupancy"] > 0
    assert (built.figures[f"{launch}.mix.matrix"] > 0) == (name in DENSE)
    check(backend(), built, nest, machine, work.spec, work.checks[-1], seed=3)


@pytest.mark.parametrize("name", CASES)
def test_a_thread_program_is_right(name):
    machine, nest, sizes = machine_of("mi300"), nest_of(name), work_of(name).checks[-1]
    known, own, bound = reference(nest.spec, sizes, 7), spelled(nest), bind(nest.spec, sizes)
    tensors = {
        p.name: to_device(known.inputs[p.name], p.dtype)
        if p.role == "input"
        else poisoned(p, bound)
        for p in parameters(nest)
    }
    made = program(own, machine)
    held = dict(zip((p.name for p in made.tensors), tensors.values(), strict=True))
    interpret(
        made, known_sizes(nest, own, sizes), held, instructions(machine), machine.on_chip_bytes
    )
    for t in nest.spec.outputs:
        compare(nest.spec, sizes, t.name, from_device(tensors[t.name], t.dtype), known)


@pytest.mark.parametrize("name", CASES)
def test_what_is_emitted_is_admitted(name):
    ADMISSION.require(emitted(name))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('asm volatile("s_trap 2");', "asm"),
        ("y_ptr[0] = *(float*)0x7f00000000;", r"float \*"),
        ("__builtin_trap();", "__builtin_trap"),
        ("hipMalloc(0, 4);", "hipMalloc"),
        ("word_xor(1, 2);", "word_xor"),
        ("y_ptr[0] = 1;\0", "a text where it ends"),
        ("#include <stdio.h>", "directives are #include <hip/hip_runtime.h>"),
    ],
)
def test_what_is_more_than_a_kernel_is_refused(line, why):
    source = emitted("rows").replace("  const int thread", f"  {line}\n  const int thread")
    with pytest.raises(BackendError, match=why) as seen:
        ADMISSION.require(source)
    assert seen.value.stage == "build"


def test_what_is_not_held_is_refused():
    work = parse_workload(
        'def f(x: f64[M]) -> f64[M]:\n    """A copy."""\n    y[m] = x[m]\n    return y\n'
        "tune(M=64)\ncheck(M=3)\n",
        "f",
    )
    nest = lower(work.spec, parse_schedule("schedule(f)\n"), machine_of("mi300"), work.tune)
    few = Hip(replace(backend().manifest, dtypes=("f32",)))
    with pytest.raises(BackendError, match="`x` is f64; held here: f32"):
        few.emit(nest, machine_of("mi300"))


@pytest.mark.parametrize("dtype", ["f8e4m3", slow("f8e5m2")])
def test_operands_of_8_bits_are_multiplied_as_they_are_where_the_chip_has_their_values(
    dtype, tmp_path
):
    work = parse_workload(
        f"def f(x: {dtype}[M, K], w: {dtype}[K, N]) -> bf16[M, N]:\n"
        '    """Multiply matrices of 8-bit floats."""\n'
        "    y[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)\n    return y\n"
        "tune(M=128, K=256, N=128)\ncheck(M=7, K=33, N=5)\ncheck(M=33, K=257, N=40)\n",
        "f",
    )
    for target, function in (("mi350", "mfma_16x16x128("), ("mi300", "mfma_16x16x16(")):
        machine, folder = machine_of(target), tmp_path / target
        folder.mkdir()
        nest = lower(work.spec, autoschedule(work.spec, machine, work.tune), machine, work.tune)
        source = backend().emit(nest, machine)
        assert function in source
        built = backend().build(source, nest, machine, folder)
        assert built.figures["spills"] == 0 < built.figures["f_0.mix.matrix"]
        for sizes in work.checks:
            check(backend(), built, nest, machine, work.spec, sizes, seed=3)
