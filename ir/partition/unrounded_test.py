"""Roundings between pointwise equations of a kernel are dropped; those with other readers stay."""

import pytest

from ir.parse.parse import parse_spec
from ir.partition.unrounded import unrounded
from ir.print import spec_text
from ir.verify import facts

CHAIN = (
    "a[i, j] = bf16(f32(x[i, j]) * 3.0)",
    "b[i, j] = bf16(tanh(f32(a[i, j])))",
    "y[i, j] = bf16(f32(a[i, j]) * f32(b[i, j]))",
)


def made(*lines, inputs="x: bf16[4, 4]", output="y: bf16[4, 4]"):
    """The equations of the spec without roundings, by target."""
    name, _, kind = output.partition(": ")
    body = "\n".join(f"    {line}" for line in (*lines, f"return {name}"))
    spec = unrounded(parse_spec(f'def f({inputs}) -> {kind}:\n    """F."""\n{body}\n'))
    facts(spec)
    text = spec_text(spec).splitlines()
    return {line.strip().split("[")[0]: line.strip() for line in text if " = " in line}


def test_what_pointwise_equations_read_stays_f32():
    found = made(*CHAIN)
    assert found["a"] == "a[i, j] = f32(x[i, j]) * 3.0"
    assert found["b"] == "b[i, j] = tanh(a[i, j])"
    assert found["y"] == "y[i, j] = bf16(a[i, j] * b[i, j])"


def test_a_value_that_is_only_moved_is_rounded_where_it_is_stored():
    found = made("a[i, j] = bf16(f32(x[i, j]) * 3.0)", "y[j, i] = a[i, j]")
    assert found["a"] == "a[i, j] = f32(x[i, j]) * 3.0"
    assert found["y"] == "y[j, i] = bf16(a[i, j])"


@pytest.mark.parametrize(
    "reader",
    [
        "y[i, j] = sum(f32(a[i, k]) * f32(x[k, j]), k)",  # an operand of a matmul
        "y[i, j] = max(f32(a[i, k]) + j, k)",
        "y[i, j] = bf16(where(f32(a[i, j]) > 1.0, 1.0, 0.0))",
        "y[i, j] = bf16(floor(f32(a[i, j])))",
        "y[i, j] = bf16(f32(i32(f32(a[i, j]))))",
        "y[i, j] = cumsum(f32(a[i, j]), j)",
    ],
)
def test_other_readers_see_the_rounded_value(reader):
    line = "a[i, j] = bf16(f32(x[i, j]) * 3.0)"
    assert made(line, reader)["a"] == line


def test_outputs_and_quantised_values_stay():
    first = "y[i, j] = bf16(f32(x[i, j]) * 3.0)"
    both = "(bf16[4, 4], bf16[4, 4])"
    found = made(first, "z[i, j] = bf16(f32(y[i, j]) + 1.0)", output=f"y, z: {both}")
    assert found["y"] == first
    quantised = "q[i, j] = f8e4m3(f32(x[i, j]))"
    assert made(quantised, "y[i, j] = bf16(f32(q[i, j]) * 2.0)")["q"] == quantised


def test_a_value_of_a_recurrence_is_rounded_at_each_step():
    before = "h[t, j] = bf16(f32(pad(h[t - 1, j], 0.0)) + f32(x[t, j]))"
    assert made(before, "y[t, j] = bf16(f32(h[t, j]) * 2.0)")["h"] == before
