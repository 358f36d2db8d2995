"""Arrays in the dtypes of the language: bf16 is held as float32 with bf16's values."""

from __future__ import annotations

import numpy as np

HELD_AS = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "bf16": np.float32,
    "i64": np.int64,
    "i32": np.int32,
    "b8": np.bool_,
}

BITS = {"f16": 11, "bf16": 8}  # of the significand, the implied one included


def round_to(array: np.ndarray, dtype: str) -> np.ndarray:
    """The array with every entry at the nearest value of `dtype`, ties to even."""
    with np.errstate(over="ignore", invalid="ignore"):
        held = np.asarray(array).astype(HELD_AS[dtype])
    return _bf16(held) if dtype == "bf16" else held


def round_bits(array: np.ndarray, bits: int) -> np.ndarray:
    """The array with every entry rounded to `bits` significant bits, its range kept."""
    significand, exponent = np.frexp(array)
    return np.ldexp(np.rint(significand * 2.0**bits), exponent - bits)


def _bf16(array: np.ndarray) -> np.ndarray:
    """float32 rounded to its upper 16 bits."""
    bits = array.view(np.uint32).astype(np.uint64)
    bits += 0x7FFF + ((bits >> np.uint64(16)) & np.uint64(1))
    rounded = (bits.astype(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    return np.where(np.isnan(array), np.float32(np.nan), rounded)
