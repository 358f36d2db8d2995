"""Arrays in the dtypes of the language; float32 holds the formats that numpy lacks.

tf32 has the exponent range of f32 and 10 fraction bits. All rounding is to nearest, ties to even.
Values beyond the largest become that value in f8e4m3, which has no infinity, and infinity in
f8e5m2, as in torch. f8e8m0 holds only powers of two: signs are lost, and ties go up.
"""

from __future__ import annotations

import numpy as np

from ir.spec import INTEGERS, SCALE

HELD_AS = {
    "f64": np.float64,
    "f32": np.float32,
    "tf32": np.float32,
    "f16": np.float16,
    "bf16": np.float32,
    "f8e4m3": np.float32,
    "f8e5m2": np.float32,
    "f8e8m0": np.float32,
    "i64": np.int64,
    "i32": np.int32,
    "i16": np.int16,
    "i8": np.int8,
    "u8": np.uint8,
    "b8": np.bool_,
}

_DROPPED = {"bf16": 16, "tf32": 13}  # low float32 bits that the dtype lacks
# Fraction bits, least exponent, largest value, and the result for larger values.
_EIGHT = {"f8e4m3": (3, -6, 448.0, 448.0), "f8e5m2": (2, -14, 57344.0, np.inf)}
BITS = {"tf32": 11, "f16": 11, "bf16": 8}  # significand bits, with the implicit one


def round_to(array: np.ndarray, dtype: str) -> np.ndarray:
    """The array rounded to the nearest values of `dtype`, ties to even; for integers see
    `whole`."""
    if dtype in INTEGERS and dtype != "b8":
        return whole(array, dtype).astype(HELD_AS[dtype])
    with np.errstate(over="ignore", invalid="ignore"):
        held: np.ndarray = np.asarray(array).astype(HELD_AS[dtype])
    if dtype in _EIGHT:
        return _eight(held, *_EIGHT[dtype])
    if dtype == SCALE:
        return _power(held)
    return _cut(held, _DROPPED[dtype]) if dtype in _DROPPED else held


def whole(array: np.ndarray, dtype: str) -> np.ndarray:
    """The array converted to an integer dtype, as int64.

    Integers wrap. Floats are truncated toward zero and clamped to the range of i64, or of i32 for
    narrower dtypes; NaN becomes 0.
    """
    data = np.asarray(array)
    if data.dtype.kind == "f":
        limits = np.iinfo(np.int64 if dtype == "i64" else np.int32)
        with np.errstate(invalid="ignore"):
            cut = np.nan_to_num(np.trunc(data.astype(np.float64)), nan=0.0)
            low, high = cut <= float(limits.min), cut >= float(limits.max)
            inside = np.where(low | high, 0, cut).astype(np.int64)
        data = np.where(low, limits.min, np.where(high, limits.max, inside))
    return data.astype(HELD_AS[dtype]).astype(np.int64)


def round_bits(array: np.ndarray, bits: int) -> np.ndarray:
    """The array with each element rounded to `bits` significant bits; the exponent range is
    unchanged."""
    wide = np.asarray(array, np.float64)
    rounded = _even(wide.view(np.uint64), 53 - bits).view(np.float64)
    return np.where(np.isnan(wide), np.nan, rounded).astype(array.dtype, copy=False)


def _eight(
    array: np.ndarray, fraction: int, least: int, largest: float, beyond: float
) -> np.ndarray:
    """float32 rounded to an 8-bit float, subnormal numbers included."""
    _, exponent = np.frexp(array)
    step = np.maximum(exponent - 1, least) - fraction
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.ldexp(np.rint(np.ldexp(array, -step)), step)
    over = np.abs(rounded) > largest
    return np.where(over, np.copysign(np.float32(beyond), array), rounded).astype(np.float32)


def _power(array: np.ndarray) -> np.ndarray:
    """float32 rounded to a power of two from 2^-127 to 2^127; 0 becomes 2^-127, larger values
    NaN."""
    size = np.ascontiguousarray(array, np.float32).view(np.uint32) & 0x7FFFFFFF
    code, rest = (size >> 23).astype(np.int32), size & 0x7FFFFF
    # Below the least normal number torch rounds up everything above half of it.
    up = (code != 255) & ((rest > 0x400000) | ((rest == 0x400000) & (code > 0)))
    power = code + up - 127
    return np.where(
        power == 128, np.float32(np.nan), np.ldexp(np.float32(1), np.minimum(power, 127))
    )


def _cut(array: np.ndarray, dropped: int) -> np.ndarray:
    """float32 rounded to its upper 32 - `dropped` bits, ties to even."""
    rounded = _even(array.view(np.uint32), dropped).view(np.float32)
    return np.where(np.isnan(array), np.float32(np.nan), rounded)


def _even(bits: np.ndarray, dropped: int) -> np.ndarray:
    """The bits of floats without their lower `dropped`, rounded to nearest, ties to even; any bits
    for NaN."""
    kind = bits.dtype.type
    # Half a unit, minus one bit if the kept part is even: this rounds ties to even.
    rounded = (bits >> kind(dropped)) & kind(1)
    rounded += kind((1 << (dropped - 1)) - 1)
    rounded += bits
    rounded &= kind(~((1 << dropped) - 1) & np.iinfo(kind).max)
    return rounded
