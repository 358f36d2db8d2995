"""Tests that variants verify, print and parse back, and compute the same up to rounding."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.variants import schedule_with_dtype, with_dtype
from ir.errors import KernelError
from ir.parse.parse import parse_spec
from ir.parse.schedule import parse_schedule
from ir.print import spec_text
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.spec import FLOATS
from ir.verify import facts
from testing.samples.samples import KERNELS, workload


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_variant_has_the_dtype_and_prints_and_parses(kernel, dtype):
    made = with_dtype(workload(kernel).spec, dtype)
    floats = {t.dtype for t in (*made.inputs, *made.outputs)} & set(FLOATS)
    assert floats <= {dtype}
    assert parse_spec(spec_text(made)) == made


@pytest.mark.parametrize("kernel", KERNELS)
def test_intermediate_tensors_of_a_narrow_variant_are_wide(kernel):
    made = with_dtype(workload(kernel).spec, "f16")
    named = {t.name for t in (*made.inputs, *made.outputs)}
    inner = {t.dtype for n, t in facts(made).tensors.items() if n not in named}
    assert "f16" not in inner


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_variant_computes_what_the_spec_does(kernel):
    known = workload(kernel)
    sizes = known.checks[-1]
    narrow = with_dtype(known.spec, "bf16")
    inputs = random_inputs(narrow, sizes, np.random.default_rng(0))
    for name, array in evaluate(known.spec, inputs, sizes).items():
        np.testing.assert_allclose(evaluate(narrow, inputs, sizes)[name], array, rtol=1e-12)


def test_the_spec_of_its_own_dtype_is_itself():
    spec = workload("pffn").spec
    assert with_dtype(spec, "f16") == spec


def test_what_is_no_float_is_refused():
    with pytest.raises(KernelError, match="`i32` is no float"):
        with_dtype(workload("softmax").spec, "i32")
    assert with_dtype(workload("map_id").spec, "i32") == workload("map_id").spec


def test_a_schedule_rounds_to_the_variants_dtype():
    given = parse_schedule("schedule(f)\ncompute(a, unit=matrix)\nprecision(a, dtype=f16)\n")
    assert "precision(a, dtype=bf16)" in str(schedule_with_dtype(given, "bf16"))
    assert "precision" not in str(schedule_with_dtype(given, "f32"))
