"""Every pointwise function: the reference against torch. Backends are held to the reference by the
language suite."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch

from ir.reference.reference import evaluate
from testing.samples.function_samples import (
    FLOAT_ONE,
    TESTS,
    float_inputs,
    float_spec,
    integer_inputs,
    integer_spec,
)

COUNT = 400
SIZES = {"M": COUNT}
F = torch.nn.functional
TORCH = {
    "gelu": F.gelu,
    "silu": F.silu,
    "mod": torch.remainder,
    "floordiv": torch.floor_divide,
    "cube": lambda x, w: x**3,
    "least": lambda x, w: torch.minimum(x, torch.ones(())),
    "where": lambda x, w: torch.where(x < w, x, -w),
}
OF_INTEGERS = {
    **{n: getattr(torch, f"bitwise_{n}") for n in ("and", "or", "xor")},
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "mod": torch.remainder,
    "fmod": torch.fmod,
    "floordiv": torch.floor_divide,
    "shl": lambda i, j: i << (j & 7),
    "shr": lambda i, j: i >> (j & 7),
    "minimum": torch.minimum,
    "maximum": torch.maximum,
    "not": lambda i, j: ~i,
    "sign": lambda i, j: torch.sign(i),
    "abs": lambda i, j: torch.abs(i),
    "cube": lambda i, j: torch.remainder(i, 100) ** 3,
}
LIMITS = ("silu", "gelu")  # which are NaN at -inf in torch, and may be 0


def spec(dtype):
    return integer_spec(dtype) if dtype.startswith("i") else float_spec(dtype)


@cache
def inputs(dtype):
    return (integer_inputs if dtype.startswith("i") else float_inputs)(dtype, COUNT)


@cache
def exact(dtype):
    return evaluate(spec(dtype), inputs(dtype), SIZES)


def require_near(found, right, rtol, name):
    with np.errstate(over="ignore"):
        held = np.asarray(right).astype(found.dtype)
    np.testing.assert_allclose(
        found.astype(np.float64), held.astype(np.float64), rtol=rtol, atol=rtol / 10, err_msg=name
    )


def torch_of(name):
    return TORCH.get(name) or getattr(torch, name, None) or getattr(torch.special, name)


@pytest.mark.parametrize("name", [n for n in FLOAT_ONE if n not in TESTS])
def test_the_reference_is_as_torch_of_one_float(name):
    x = inputs("f64")["x"]
    found = exact("f64")[f"y_{name}"]
    right = torch_of(name)(torch.from_numpy(x)).numpy()
    kept = ~np.isneginf(x) if name in LIMITS else np.full(x.shape, True)
    require_near(found[kept], right[kept], 1e-12, name)
    if name in ("sign", "abs", "floor", "ceil", "relu"):
        return  # the sign of zero is left open
    zero = (x == 0) & (found == 0)
    np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(right[zero]))


@pytest.mark.parametrize(
    "name",
    "atan2 fmod mod floordiv pow cube div minimum maximum least where".split(),
)
def test_the_reference_is_as_torch_of_two_floats(name):
    x, w = (torch.from_numpy(inputs("f64")[n]) for n in "xw")
    require_near(exact("f64")[f"y_{name}"], torch_of(name)(x, w).numpy(), 1e-12, name)


@pytest.mark.parametrize("name", TESTS)
def test_the_reference_is_as_torch_of_tests(name):
    right = torch_of(name)(torch.from_numpy(inputs("f64")["x"])).numpy()
    np.testing.assert_array_equal(exact("f64")[f"y_{name}"], right)


@pytest.mark.parametrize("dtype", ["i32", "i64"])
@pytest.mark.parametrize("name", OF_INTEGERS)
def test_the_reference_is_as_torch_of_integers(name, dtype):
    i, j = (torch.from_numpy(inputs(dtype)[n]) for n in "ij")
    right = OF_INTEGERS[name](i, j).numpy()
    np.testing.assert_array_equal(exact(dtype)[f"y_{name}"], right)
