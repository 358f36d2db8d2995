"""Kernels whose names are words of Python, of Triton or of the emitted text itself."""

import ast
import builtins

import pytest

from backends.registry import REGISTRY, target
from backends.triton.backend import Triton
from backends.triton.emit import names
from backends.triton.testing.walks import case
from ir.autoschedule.autoschedule import autoschedule, plain
from ir.lower.lower import lower
from ir.parse.expression import is_name
from ir.verify import facts
from testing.samples.named_specs import named_specs
from testing.samples.samples import spec_of

MACHINE = target("mi300")
BACKEND = Triton(REGISTRY.manifest("triton"))


def nest_of(spec, scheduler=plain):
    sizes = dict(zip(facts(spec).sizes, (5, 7, 3), strict=False))
    return lower(spec, scheduler(spec, MACHINE, sizes), MACHINE, sizes), sizes


def test_what_has_such_names_compiles(tmp_path):
    words = "tl triton torch launch tensor tile float int len M N K"
    spec = next(named_specs(words.split()))
    nest, sizes = nest_of(spec, autoschedule)
    text = BACKEND.emit(nest, MACHINE)
    assert BACKEND.build(text, nest, MACHINE, tmp_path).figures
    assert "def tl_(" in text


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
