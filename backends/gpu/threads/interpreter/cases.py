"""Sizes and arrays for the sample programs, for tests."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from backends.gpu.threads.interpreter.interpret import interpret
from backends.gpu.threads.thread import ThreadProgram
from backends.shared.arrays import poisoned, to_device
from ir.sizes import value
from machines.gpu.matrix_instructions import family

TABLE = family("mma_sync")
WARPGROUPS = (*TABLE, *family("wgmma"))
SIZES = {
    "vector_add": {"N": 1026},
    "row_sum": {"M": 5, "K": 300},
    "transpose": {"M": 128, "N": 64},
    "matmul": {"M": 72, "N": 80, "K": 136},
    "histogram": {"N": 1000, "B": 300},
}


def arrays(program: ThreadProgram, sizes: dict[str, int], seed: int = 0) -> dict[str, np.ndarray]:
    """Random inputs, and a poisoned output."""
    draw, found = np.random.default_rng(seed), {}
    *inputs, made = program.tensors
    for p in inputs:
        shape = [value(e, sizes) for e in p.shape]
        data = draw.integers(0, 300, shape) if p.dtype == "i32" else draw.normal(size=shape)
        found[p.name] = to_device(data, p.dtype)
    return found | {made.name: poisoned(made, sizes)}


def attended(program: ThreadProgram, sizes: Mapping[str, int]) -> np.ndarray:
    """The output of a program for random queries, keys and values. Shape: (M, D)."""
    draw = np.random.default_rng(0)
    shapes = {"q": "MD", "k": "ND", "v": "ND"}
    tensors = {
        name: to_device(draw.normal(size=[sizes[s] for s in axes]), "bf16")
        for name, axes in shapes.items()
    }
    tensors["y"] = np.full((sizes["M"], sizes["D"]), np.nan, np.float32)
    interpret(program, sizes, tensors, WARPGROUPS, 1 << 18)
    return tensors["y"]
