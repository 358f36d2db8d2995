"""Kernels whose names are words of Python, of Triton or of the emitted text itself."""

import ast
import builtins

import pytest

from backends.registry import REGISTRY, target
from backends.triton.backend import Triton
from backends.triton.emit import names
from backends.triton.walks import case, wrong
from ir.autoschedule.autoschedule import autoschedule, plain
from ir.lower.lower import lower
from ir.parse.expression import is_name
from ir.samples.named_specs import named_specs
from ir.samples.samples import spec_of
from ir.verify import facts

MACHINE = target("mi300")
BACKEND = Triton(REGISTRY.manifest("triton"))
FORMS = (
    "x_ptr",
    "x_desc",
    "x_factor",
    "x",
    "x_at",
    "offs_x",
    "in_x",
    "tiles_x",
    "x_step",
    "x_low",
    "part_1",
    "x_dim0",
    "x_3",
    "f_0",
    "input",
    "double",
    "a_",
    "__",
    "_a",
    "rank",
    "self",
    "args",
    "BLOCK_X",
    "EVEN_X",
    "STEPS_X",
    "BULK_X",
    "LOG2_E",
    "M_",
    "M",
)


def nest_of(spec, scheduler=plain):
    sizes = dict(zip(facts(spec).sizes, (5, 7, 3), strict=False))
    return lower(spec, scheduler(spec, MACHINE, sizes), MACHINE, sizes), sizes


def test_names_are_no_words_of_the_language(tmp_path):
    for spec in named_specs(sorted(names.WORDS) + list(FORMS)):
        nest, sizes = nest_of(spec)
        assert not wrong(nest, MACHINE, sizes, tmp_path), spec


def test_what_has_such_names_compiles(tmp_path):
    words = "tl triton torch launch tensor tile float int len M N K"
    spec = next(named_specs(words.split()))
    nest, sizes = nest_of(spec, autoschedule)
    text = BACKEND.emit(nest, MACHINE)
    assert BACKEND.build(text, nest, MACHINE, tmp_path).figures
    assert "def tl_(" in text


@pytest.mark.parametrize(
    "inputs, equations",
    [
        ("x: f32[M], y_0: f32[M]", "x_ptr[m] = x[m] * 2.0\ny[m] = x_ptr[m] - y_0[m]"),
        (
            "x: f32[M, N]",
            "part_1[m, n] = x[m, n] + pad(x[m, n - 1], 1.0)\ny[m] = sum(silu(part_1[m, n] * 2.0), n)",
        ),
        ("x: f32[M], f_0: f32[M]", "y[m] = x[m] - f_0[m]"),
        ("x: f32[BLOCK_M], at: i32[BLOCK_M]", "y[m] = pad(x[at[m]], 0.0) * x[m]"),
        ("x: f32[M, N], n: f32[M]", "y[in_n] = sum(x[in_n, offs_n] * n[in_n], offs_n)"),
    ],
)
def test_no_two_names_become_one(inputs, equations, tmp_path):
    size = "BLOCK_M" if "BLOCK_M" in inputs else "M"
    spec = spec_of(*equations.splitlines(), inputs=inputs, result=f"f32[{size}]")
    nest, sizes = nest_of(spec)
    assert not wrong(nest, MACHINE, sizes, tmp_path)


def test_a_name_that_is_no_word_stays():
    spec = spec_of(
        "y[m] = input[m] + double[m]", inputs="input: f32[M], double: f32[M]", result="f32[M]"
    )
    nest, _ = nest_of(spec)
    assert names.spelled(nest) is nest


@pytest.mark.parametrize("kernel", ["attention", "embedding_bag", "matmul_bias_gelu"])
def test_whatever_a_text_has_of_itself_is_a_word(kernel):
    work = case(kernel)
    nest = lower(work.spec, autoschedule(work.spec, MACHINE, work.tune), MACHINE, work.tune)
    tree = ast.parse(BACKEND.emit(nest, MACHINE))
    read = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    assert {n for n in read & set(dir(builtins)) if is_name(n)} <= names.WORDS
    imported = [
        a for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom) for a in n.names
    ]
    assert {(a.asname or a.name).split(".")[0] for a in imported} <= names.WORDS
