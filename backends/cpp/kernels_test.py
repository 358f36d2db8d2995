"""Kernels in C++ against the reference: of the library, recurrences, scans, atomics, unusual
names."""

from __future__ import annotations

import platform

import numpy as np
import pytest

from backends.backend import BackendError
from backends.cpp.backend import FLAGS, Cpp
from backends.measure import check, check_draws, draw_sizes
from backends.registry import REGISTRY, target
from backends.shared.compiler import Compiler
from ir.autoschedule.autoschedule import autoschedule, plain
from ir.edits.edits import neighbours
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.parse.parse import parse_spec, parse_workload
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.verify import facts
from ir.workload import LIBRARY
from testing.samples.named_specs import named_specs
from testing.samples.samples import RECURRENT, decisions, spec_of, workload
from testing.slow import slow

MACHINE = target("cpu")
KERNELS = sorted(p.stem for p in LIBRARY.glob("*.kir"))
FORMS = ("n_i", "n_at", "n_t", "n_p", "a__b", "_a", "a_", "exp", "fn", "acc", "run", "first", "M_")
WORDS = ("double", "tile", "arena", "least", "f16", "bf16", "i32", "NULL", "KERNEL", "rest")


def backend() -> Cpp:
    return Cpp(REGISTRY.manifest("cpp"))


def built(nest, folder):
    folder.mkdir(exist_ok=True)
    return backend().build(backend().emit(nest, MACHINE), nest, MACHINE, folder)


def right(spec, nest, sizes, folder):
    inputs = random_inputs(spec, sizes, np.random.default_rng(2))
    found = backend().run(built(nest, folder), nest, MACHINE, sizes, inputs)
    for name, array in evaluate(spec, inputs, sizes).items():
        np.testing.assert_allclose(found[name], array, 1e-4, 1e-4, err_msg=str(nest.schedule))


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_of_the_library_is_right(kernel, tmp_path):
    w = parse_workload((LIBRARY / f"{kernel}.kir").read_text())
    nest = lower(w.spec, autoschedule(w.spec, MACHINE, w.tune), MACHINE, w.tune)
    made = built(nest, tmp_path)
    for sizes in w.checks:
        check(backend(), made, nest, MACHINE, w.spec, sizes, seed=5)
    check_draws(backend(), made, nest, MACHINE, w.spec, draw_sizes(w.spec, w.checks), 5)


@pytest.mark.parametrize("without", ["-mno-avx512f", slow("-mno-avx512bf16"), ""])
@pytest.mark.parametrize("kernel", ["matmul_bias_gelu", slow("attention")])
def test_products_of_bf16_are_right_on_other_vectors(kernel, without, tmp_path, monkeypatch):
    """Processors differ in the length of vectors and in whether they multiply pairs of bf16.

    Instructions are only taken away: what is built runs on the processor of the test.
    """
    if without:
        if platform.machine() != "x86_64":
            pytest.skip("compilers for other processors do not know this option")
        compiler = Compiler("g++", (*FLAGS, without))
        monkeypatch.setattr(Cpp, "compiler", compiler)
    w = workload(kernel)
    nest = lower(w.spec, autoschedule(w.spec, MACHINE, w.tune), MACHINE, w.tune)
    for number, sizes in enumerate(w.checks):
        made = built(nest, tmp_path / str(number))
        check(backend(), made, nest, MACHINE, w.spec, sizes, seed=5)


@pytest.mark.parametrize("kernel", [slow("attention"), "conv1d", slow("rmsnorm_matmul")])
def test_edited_schedules_are_right(kernel, tmp_path):
    """Some single edits of a first schedule."""
    w = workload(kernel)
    start, sizes = plain(w.spec, MACHINE, w.tune), w.checks[1]
    tried = 0
    for number, edit in enumerate(neighbours(w.spec, start, MACHINE, w.tune)[::25]):
        try:
            nest = lower(w.spec, edit.apply(start), MACHINE, w.tune)
        except KernelError:
            continue
        check(backend(), built(nest, tmp_path / str(number)), nest, MACHINE, w.spec, sizes, seed=5)
        tried += 1
    assert tried > 0


def test_a_kernel_that_changes_its_input_is_refused(tmp_path):
    w = workload("softmax")
    nest = lower(w.spec, autoschedule(w.spec, MACHINE, w.tune), MACHINE, w.tune)
    source = backend().emit(nest, MACHINE)
    spoiled = source.replace("y_g(", "x_g(", 1)
    made = backend().build(spoiled, nest, MACHINE, tmp_path)
    inputs = random_inputs(w.spec, w.checks[1], np.random.default_rng(1))
    with pytest.raises(BackendError, match="changed its input `x`"):
        backend().run(made, nest, MACHINE, w.checks[1], inputs)


@pytest.mark.parametrize("name", RECURRENT)
def test_a_recurrence_is_launched_once_for_each_step(name, tmp_path):
    w = workload(name)
    nest = lower(w.spec, plain(w.spec, MACHINE, w.checks[-1]), MACHINE, w.checks[-1])
    right(w.spec, nest, w.checks[-1], tmp_path)


REDUCTIONS = ("max", "min", "prod", "sum")
SCANS = ("cumsum", "cumprod", "cummax", "cummin")


@pytest.mark.parametrize("dtype", ["f32", "i32", "i64"])
def test_reductions_and_scans_of_every_dtype(dtype, tmp_path):
    lines = [f"{f}_y[m] = {f}(x[m, k], k)" for f in REDUCTIONS]
    lines += [f"{f}_y[m, k] = {f}(x[m, k], k)" for f in SCANS]
    results = [f"{dtype}[M]"] * len(REDUCTIONS) + [f"{dtype}[M, K]"] * len(SCANS)
    body = "".join(f"    {line}\n" for line in lines)
    spec = parse_spec(
        f"def rows(x: {dtype}[M, K]) -> ({', '.join(results)}):\n"
        f'    """Reductions of rows."""\n{body}    return '
        + ", ".join(f"{f}_y" for f in (*REDUCTIONS, *SCANS))
        + "\n"
    )
    sizes = {"M": 5, "K": 37}
    right(spec, lower(spec, plain(spec, MACHINE, sizes), MACHINE, sizes), sizes, tmp_path)


def test_names_are_no_words_of_the_language(tmp_path):
    for number, spec in enumerate(named_specs([*WORDS, *FORMS])):
        sizes = dict(zip(facts(spec).sizes, (5, 7, 3), strict=False))
        nest = lower(spec, plain(spec, MACHINE, sizes), MACHINE, sizes)
        right(spec, nest, sizes, tmp_path / str(number))


def test_a_write_beside_a_tensor_is_seen(tmp_path):
    spec = spec_of("y[m] = x[m] * 2.0", inputs="x: f32[M]", result="f32[M]")
    nest = lower(spec, decisions(spec, "tile(m, size=8)"), MACHINE, {"M": 8})
    source = backend().emit(nest, MACHINE)
    spoiled = source.replace("y_g(m_at + m_i)", "y_g(m_at + m_i + 1)")
    assert spoiled != source
    made = backend().build(spoiled, nest, MACHINE, tmp_path)
    with pytest.raises(BackendError, match="the kernel writes outside `y`"):
        backend().run(made, nest, MACHINE, {"M": 8}, {"x": np.ones(8, np.float32)})


def test_what_the_manifest_does_not_hold_is_refused():
    spec = spec_of("y[m] = x[m] * 2.0", inputs="x: f64[M]", result="f64[M]")
    nest = lower(spec, plain(spec, MACHINE, {"M": 8}), MACHINE, {"M": 8})
    with pytest.raises(BackendError, match="tensors of f64 are not held here"):
        backend().emit(nest, MACHINE)
