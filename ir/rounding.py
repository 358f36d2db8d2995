"""Arrays in the dtypes of the language: bf16 and tf32 are held as float32 with their values.

tf32 has the exponents of f32 and 10 bits of fraction; like everything here it is rounded to the
nearest, ties to even.
"""

from __future__ import annotations

import numpy as np

HELD_AS = {
    "f64": np.float64,
    "f32": np.float32,
    "tf32": np.float32,
    "f16": np.float16,
    "bf16": np.float32,
    "i64": np.int64,
    "i32": np.int32,
    "b8": np.bool_,
}

_DROPPED = {"bf16": 16, "tf32": 13}  # lower bits of a float32 that the dtype lacks
BITS = {"tf32": 11, "f16": 11, "bf16": 8}  # of the significand, the implied one included


def round_to(array: np.ndarray, dtype: str) -> np.ndarray:
    """The array with every entry at the nearest value of `dtype`, ties to even."""
    with np.errstate(over="ignore", invalid="ignore"):
        held = np.asarray(array).astype(HELD_AS[dtype])
    return _cut(held, _DROPPED[dtype]) if dtype in _DROPPED else held


def round_bits(array: np.ndarray, bits: int) -> np.ndarray:
    """The array with every entry rounded to `bits` significant bits, its range kept."""
    significand, exponent = np.frexp(array)
    return np.ldexp(np.rint(significand * 2.0**bits), exponent - bits)


def _cut(array: np.ndarray, dropped: int) -> np.ndarray:
    """float32 rounded to all but its lower `dropped` bits."""
    bits = array.view(np.uint32).astype(np.uint64)
    half = (1 << (dropped - 1)) - 1
    bits += half + ((bits >> np.uint64(dropped)) & np.uint64(1))
    upper = np.uint32(0xFFFFFFFF >> dropped << dropped)
    rounded = (bits.astype(np.uint32) & upper).view(np.float32)
    return np.where(np.isnan(array), np.float32(np.nan), rounded)
