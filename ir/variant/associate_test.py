"""Reassociated matmul chains."""

import numpy as np
import pytest

from ir.edits.edits import neighbours
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.parse.schedule import parse_schedule
from ir.print import equation_text
from ir.reference.inputs import random_inputs
from ir.reference.interpret import interpret
from ir.reference.reference import evaluate
from ir.variant.associate import associable
from ir.variant.variant import rewritten
from testing.samples.samples import SMALL, WITH_REGISTERS, workload

DECISIONS = (
    "associate(t)",
    "tile(b, size=1)",
    "tile(k, size=16)",
    "place(b.outer, level=grid)",
    "place(k.outer, level=loop)",
    "compute(t_again, unit=matrix)",
    "compute(out, unit=matrix)",
)


def schedule(kernel, *decisions):
    return parse_schedule("\n".join((f"schedule({kernel})", *decisions)) + "\n")


def test_the_product_of_the_small_ones_comes_first():
    spec = workload("wukong_fm").spec
    formed = rewritten(spec, schedule("wukong_fm", "associate(t)"))
    assert [equation_text(e) for e in formed.equations] == [
        "t_again[b, n, i] = sum(f32(x[b, n, d]) * f32(x[b, i, d]), d)",
        "out[b, n, k] = sum(t_again[b, n, i] * f32(y[b, i, k]), i)",
    ]


def test_what_is_computed_stays_the_same():
    given = workload("wukong_fm")
    for sizes in given.checks:
        nest = lower(given.spec, schedule("wukong_fm", *DECISIONS), WITH_REGISTERS, sizes)
        inputs = random_inputs(given.spec, sizes, np.random.default_rng(1))
        got, expected = interpret(nest, inputs, sizes), evaluate(given.spec, inputs, sizes)
        np.testing.assert_allclose(got["out"], expected["out"], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kernel", ["pffn", "attention", "softmax", "conv1d"])
def test_what_is_no_product_of_three_is_refused(kernel):
    spec = workload(kernel).spec
    assert associable(spec) == ()
    target = spec.equations[0].target
    with pytest.raises(KernelError, match="is no sum of products that one other"):
        rewritten(spec, schedule(kernel, f"associate({target})"))


def test_the_search_finds_it_where_there_are_registers():
    given = workload("wukong_fm")
    start = schedule("wukong_fm")
    found = {str(e) for e in neighbours(given.spec, start, WITH_REGISTERS, given.tune)}
    assert "+ associate(t)" in found
    without = {str(e) for e in neighbours(given.spec, start, SMALL, given.tune)}
    assert not any("associate" in text for text in without)
