"""Pointwise equations that only a later reduction needs, and that are wider than their source, are
no epilogue."""

import numpy as np
import pytest

from ir.parse.parse import parse_spec
from ir.partition.partition import partition
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.reference.stepwise import evaluate as stepwise

FIRST = ("c[i, j] = sum(f32(a[i, k]) * f32(w[k, j]), k)", "r[i, j] = bf16(c[i, j] + f32(x[i, j]))")
NORM = ("s[i] = sum(f[i, j] * f[i, j], j)", "n[i, j] = bf16(f[i, j] * rsqrt(s[i] + 0.5))")


def stored(*lines, result="bf16[4, 6]", back="n"):
    """What each step stores."""
    text = "\n".join(f"    {line}" for line in (*FIRST, *lines, f"return {back}"))
    head = f"def f(a: bf16[4, 5], w: bf16[5, 6], x: bf16[4, 6]) -> {result}:"
    spec = parse_spec(f'{head}\n    """F."""\n{text}\n')
    network = partition(spec, {})
    given = random_inputs(spec, {}, np.random.default_rng(5))
    for got, want in zip(stepwise(network, given), evaluate(spec, given, {}).values(), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)
    return [step.outputs for step in network.steps]


def test_a_norm_reads_what_the_contraction_stores():
    assert stored("f[i, j] = f32(r[i, j])", *NORM) == [("r",), ("n",)]
    both = stored("f[i, j] = f32(r[i, j])", *NORM, result="(bf16[4, 6], bf16[4, 6])", back="r, n")
    assert both == [("r",), ("n",)]


@pytest.mark.parametrize(
    ("line", "last"),
    [
        ("f[i, j] = r[i, j] * r[i, j]", "n[i, j] = f[i, j] + r[i, j]"),
        ("f[i, j] = f32(r[i, j])", "n[i, j] = f[i, j] + 1.0"),
    ],
)
def test_an_epilogue_of_which_nothing_is_reduced_stays_one(line, last):
    kind = "f32" if "f32" in line else "bf16"
    assert stored(line, last, result=f"{kind}[4, 6]") == [("n",)]


def test_what_is_returned_is_stored_by_the_contraction():
    steps = stored("f[i, j] = f32(r[i, j])", *NORM, result="(f32[4, 6], bf16[4, 6])", back="f, n")
    assert "f" in steps[0]


def test_what_a_matmul_reads_is_stored_by_the_contraction():
    lines = ("f[i, j] = f32(r[i, j])", "n[i, m] = sum(f[i, j] * f[m, j], j)")
    assert stored(*lines, result="f32[4, 4]")[0] == ("f",)
