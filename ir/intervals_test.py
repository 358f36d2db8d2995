"""Intervals contain every entry that an equation can give."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir.intervals import Intervals, ranged
from ir.literal import literal
from ir.parse.parse import parse_spec
from ir.print import spec_text
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate

SIZES = {"M": 5, "N": 12}
ARITHMETIC = (  # of entries A in -3..11 and an index n
    ("A", -3, 11),
    ("A + n", -3, 22),
    ("A * 2 + 1", -5, 23),
    ("2 - A", -9, 5),
    ("-A", -11, 3),
    ("A // 4", -1, 2),
    ("A % 4", 0, 3),
    ("minimum(A, 5)", -3, 5),
    ("maximum(A, 0)", 0, 11),
    ("where(A < 0, A + N, A)", -3, 23),
    ("abs(A)", 0, 11),
    ("A & 6", 0, 6),
    ("i64(A)", -3, 11),
    ("n * n + 0 * A", 0, 121),
    ("A * A - n", -44, 121),
)


def interval(equation, result="i64[M, N]"):
    lines = "".join(f"    {line}\n" for line in equation.split("; "))
    spec = parse_spec(
        f'def s(a: i64[M, N], x: f32[M, N]) -> {result}:\n    """S."""\n    range(a, -3, 12)\n'
        f"{lines}    return y\n"
    )
    return spec, Intervals(spec, SIZES).tensors["y"]


@pytest.mark.parametrize("text, low, high", ARITHMETIC)
def test_arithmetic_on_a_range(text, low, high):
    text = re.sub(r"\bA\b", "a[m, n]", text)
    spec, found = interval(f"y[m, n] = {text} + 0 * i64(n) + 0 * i64(x[m, n] > 0.0)")
    assert found == (low, high)


@pytest.mark.parametrize(
    "equation, result, expected",
    [
        ("y[m] = sum(where(x[m, n] > 0.0, 1, 0) + 0 * a[m, n], n)", "i64[M]", (0, 12)),
        ("y[m] = max(a[m, n] + 0 * i64(x[m, n] > 0.0), n)", "i64[M]", (-3, 11)),
        ("p[m] = argmax(x[m, n], n); y[m] = i64(p[m]) * 3 + a[m, 0] * 0", "i64[M]", (0, 33)),
        ("y[m, n] = cumsum(where(x[m, n] > 0.0, 1, 0) + 0 * a[m, n], n)", "i64[M, N]", (0, 12)),
    ],
)
def test_reductions_of_ranges(equation, result, expected):
    assert interval(equation, result)[1] == expected


@given(st.integers(0, 2**32))
def test_every_entry_lies_in_its_interval(seed):
    equation = "p[m] = argmin(x[m, n], n); y[m, n] = where(a[m, n] < p[m], a[m, n] - p[m], n * 2)"
    spec, (low, high) = interval(equation)
    inputs = random_inputs(spec, SIZES, np.random.default_rng(seed))
    made = evaluate(spec, inputs, SIZES)["y"]
    assert low <= made.min() and made.max() <= high
    assert inputs["a"].min() >= -3 and inputs["a"].max() < 12


def test_the_facts_of_a_literal_spec_tell_ranges():
    spec, _ = interval("p[m] = argmax(x[m, n], n); y[m, n] = a[m, n] + p[m]")
    tensors = ranged(literal(spec, SIZES)).tensors
    assert [str(e.value) for e in tensors["p"].range] == ["0", "12"]
    assert not tensors["x"].range


def test_a_range_is_part_of_the_text():
    spec, _ = interval("y[m, n] = a[m, n] + i64(x[m, n] > 0.0)")
    assert "    range(a, -3, 12)\n" in spec_text(spec)
    assert parse_spec(spec_text(spec)) == spec
    other = parse_spec(spec_text(spec).replace("-3", "0"))
    assert other != spec
