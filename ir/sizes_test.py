"""Size expressions, and the sizes that a caller gives."""

import pytest

from ir.errors import KernelError
from ir.parse.parse import parse_spec
from ir.sizes import bind, free_sizes, shape, value
from ir.spec import Apply, Number, Read, Size
from testing.samples.samples import spec_of, workload

POOL = workload("max_pool2d").spec


@pytest.mark.parametrize(
    "function, expected",
    [
        ("add", 9),
        ("sub", 5),
        ("mul", 14),
        ("floordiv", 3),
        ("mod", 1),
        ("minimum", 2),
        ("maximum", 7),
    ],
)
def test_size_arithmetic_is_of_integers(function, expected):
    assert value(Apply(function, (Size("M"), Number(2))), {"M": 7}) == expected


def test_a_negated_size_is_negative():
    assert value(Apply("neg", (Size("M"),)), {"M": 7}) == -7


def test_division_rounds_down():
    assert value(Apply("floordiv", (Apply("neg", (Size("M"),)), Number(2))), {"M": 7}) == -4


def test_a_size_is_made_of_sizes_and_integers_only():
    with pytest.raises(KernelError, match="made of sizes and integers"):
        value(Apply("exp", (Size("M"),)), {"M": 1})
    with pytest.raises(KernelError, match="made of sizes and integers"):
        value(Read("x", ()), {})


def test_a_size_that_is_missing_is_a_key_error():
    with pytest.raises(KeyError):
        value(Size("M"), {})


def test_derived_sizes_follow_from_the_free_ones():
    assert free_sizes(POOL) == ("N", "C", "H", "W")
    bound = bind(POOL, {"N": 1, "C": 2, "H": 7, "W": 4})
    assert (bound["P"], bound["Q"]) == (4, 2)
    assert shape(POOL.outputs[0], bound) == (1, 2, 4, 2)


def test_an_unknown_size_is_named_with_those_there_are():
    with pytest.raises(KernelError, match="`max_pool2d` has no free size `P`") as caught:
        bind(POOL, {"N": 1, "C": 2, "H": 7, "W": 4, "P": 4})
    assert caught.value.allowed == "N, C, H, W"


@pytest.mark.parametrize("size", [0, -1, 2.0, "4"])
def test_a_size_is_a_positive_integer(size):
    with pytest.raises(KernelError, match=r"size N=.* is not a positive integer"):
        bind(POOL, {"N": size, "C": 2, "H": 7, "W": 4})


def test_missing_sizes_are_all_named():
    with pytest.raises(KernelError, match="needs a value for H, W") as caught:
        bind(POOL, {"N": 1, "C": 2})
    assert "N, C, H, W" in caught.value.hint


def derived(text: str):
    return parse_spec(
        f'def f(\n    x: f32[H, W],\n    P={text},\n) -> f32[P]:\n    """F."""\n'
        "    y[p] = pad(x[p, 0], 0.0)\n    return y\n"
    )


def test_a_derived_size_is_positive():
    with pytest.raises(KernelError, match="size P comes out as 0"):
        bind(derived("H - 3"), {"H": 3, "W": 1})


def test_a_derived_size_that_divides_by_zero_is_a_fault_of_the_sizes():
    with pytest.raises(KernelError):
        bind(derived("H // (W - 1)"), {"H": 3, "W": 1})


def test_sizes_in_shapes_and_in_derived_sizes_are_free():
    spec = spec_of("y[k] = x[2 * k]", inputs="x: f32[2*K]", result="f32[K]")
    assert free_sizes(spec) == ("K",)
    assert shape(spec.inputs[0], {"K": 3}) == (6,)
