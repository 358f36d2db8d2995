"""What the compiler makes of loads where a condition holds: one instruction each, without a branch."""

import re

import pytest

from backends.cutedsl.testing.assembly import ptx

ONE = """
    y = get(x_ptr, n0, n1 > 0, {other})
    put(y_ptr, 0, y)
"""
RUN = """
    x = cute.make_rmem_tensor({count}, {dtype})
    load(x, x_ptr, n0 * {count}, n1 > 0, {other})
    store(y_ptr, 0, x)
"""
LOADS = re.compile(r"@p ld\.global(\.v\d)?\.(b\d+) ")


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [("Float32", 32), ("Int32", 32), ("BFloat16", 16), ("Int16", 16), ("Int8", 8), ("Int64", 64)],
)
def test_an_element_is_loaded_by_one_instruction(dtype, bits):
    text = ptx(ONE.format(other="7"), (dtype, dtype), 2)
    words = ("", f"b{bits}") if bits <= 32 else (".v2", "b32")
    assert LOADS.findall(text) == [words] and "bra" not in text


def test_a_condition_that_never_holds_may_be_known():
    text = ptx("    put(y_ptr, 0, get(x_ptr, n0, False, 7))\n", ("Float32", "Float32"), 1)
    assert LOADS.findall(text) == [("", "b32")] and "bra" not in text


@pytest.mark.parametrize(
    ("dtype", "count", "other", "words", "fill"),
    [
        ("Float32", 4, "-fn.INFINITY", [(".v4", "b32")], -0x800000),
        ("Float32", 8, "-fn.INFINITY", [(".v4", "b32")] * 2, -0x800000),
        ("BFloat16", 8, "-fn.INFINITY", [(".v4", "b32")], -0x7F0080),
        ("BFloat16", 2, "-fn.INFINITY", [("", "b32")], -0x7F0080),
        ("Int8", 2, "1", [("", "b16")], 0x0101),
        ("Float64", 2, "0.0", [(".v4", "b32")], 0),
    ],
)
def test_a_run_is_loaded_by_one_instruction(dtype, count, other, words, fill):
    """fill: what a word of the others is, as a signed number."""
    text = ptx(RUN.format(dtype=dtype, count=count, other=other), (dtype, dtype), 2)
    assert LOADS.findall(text) == words and "bra" not in text
    filled = re.findall(r"mov\.[bu]\d+\s+%r[s\d]+, (-?\d+);", text)
    assert str(fill) in filled
