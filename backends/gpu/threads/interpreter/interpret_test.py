"""Thread programs compute what they say."""

from __future__ import annotations

import numpy as np
import pytest

from backends.gpu.threads.interpreter.cases import SIZES, TABLE, arrays
from backends.gpu.threads.interpreter.interpret import interpret
from backends.gpu.threads.testing import samples
from backends.shared.arrays import from_device

WANTED = {
    "vector_add": lambda x, y: x + y,
    "row_sum": lambda x: x.sum(axis=1),
    "transpose": lambda x: x.T,
    "matmul": lambda x, w: x @ w,
    "histogram": lambda x: np.bincount(x, minlength=300),
}


@pytest.mark.parametrize("seed", (0, 1))
@pytest.mark.parametrize("kernel", SIZES)
def test_samples_are_correct(kernel, seed):
    program, sizes = getattr(samples, kernel)(), SIZES[kernel]
    given = arrays(program, sizes)
    interpret(program, sizes, given, TABLE, 1 << 16, seed)
    *inputs, made = (from_device(given[p.name], p.dtype) for p in program.tensors)
    wanted = WANTED[kernel](*inputs)
    exact = kernel in ("vector_add", "transpose", "histogram")
    np.testing.assert_allclose(made, wanted, rtol=0 if exact else 1e-2, atol=0 if exact else 1e-1)


@pytest.mark.parametrize("sizes", [{"M": 64, "N": 64, "K": 24}, {"M": 1, "N": 8, "K": 8}])
def test_a_matmul_of_fewer_steps_than_stages_is_correct(sizes):
    program = samples.matmul()
    given = arrays(program, sizes)
    interpret(program, sizes, given, TABLE, 1 << 16)
    x, w, y = (from_device(given[n], "bf16") for n in ("x", "w", "y"))
    np.testing.assert_allclose(y, x @ w, rtol=1e-2, atol=1e-2)


def test_inputs_stay_as_they_are():
    program, sizes = samples.matmul(), SIZES["matmul"]
    given = arrays(program, sizes)
    before = {n: a.copy() for n, a in given.items()}
    interpret(program, sizes, given, TABLE, 1 << 16)
    assert all((given[n] == before[n]).all() for n in ("x", "w"))
    assert (given["y"] != before["y"]).all()
