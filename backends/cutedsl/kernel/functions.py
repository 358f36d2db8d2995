"""Elementwise functions: CuTe DSL's if they exist, in the type to which operands are promoted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import (
    Boolean,
    Float8E5M2,
    Float32,
    Float64,
    Int32,
    Int64,
    Uint8,
    Uint32,
    Uint64,
)

INFINITY = float("inf")
NAN = float("nan")
LOG2_E = 1.4426950408889634
# The binary logarithm of the normal CDF of -x for x from 0 to 5, within 2.3e-4.
_TAIL = (-2.69919848e-4, 5.29736187e-3, -4.63193953e-2, -4.66907352e-1, -1.147789, -1.00022829)
_ENDS = {  # limits of integer types
    t: (-(1 << bits - 1), (1 << bits - 1) - 1)
    for t, bits in ((Int64, 64), (Int32, 32), (cutlass.Int16, 16), (cutlass.Int8, 8))
} | {Uint8: (0, 255)}


def least_of(dtype: type) -> Any:
    """The lowest value of a type."""
    return dtype(_ENDS[dtype][0]) if dtype in _ENDS else dtype(-INFINITY)


def most_of(dtype: type) -> Any:
    """The highest value of a type."""
    return dtype(_ENDS[dtype][1]) if dtype in _ENDS else dtype(INFINITY)


def wide(count: int, aligned: Any) -> int:
    """The number of elements to move at once: `count` if they are aligned, else one."""
    return count if aligned else 1


def _type(x: Any) -> type:
    """The type in which an operand is computed."""
    if isinstance(x, float):
        return Float32
    if isinstance(x, bool | int):
        return Int32 if -(1 << 31) <= x < 1 << 31 else Int64
    if x.dtype in (Float64, Float32, Int64, Uint64, Uint32):
        return x.dtype
    return Float32 if x.dtype.is_float else Int32


def met(*operands: Any) -> tuple[Any, ...]:
    """Operands converted to their common type."""
    order = (Int32, Uint32, Int64, Uint64, Float32, Float64)
    found = max((_type(x) for x in operands), key=order.index)
    return tuple(found(x) for x in operands)


def value(x: Any) -> Any:
    """A number in the type in which it is computed."""
    return met(x)[0]


def where(condition: Any, a: Any, b: Any) -> Any:
    """a if the condition is true, else b."""
    if isinstance(condition, bool | int):
        return a if condition else b
    truths = all(isinstance(x, bool) or getattr(x, "dtype", None) is Boolean for x in (a, b))
    a, b = (Boolean(a), Boolean(b)) if truths else met(a, b)
    return type(a)(cutlass.select_(Boolean(condition), a, b))


def _floating(x: Any) -> Any:
    """An operand as a float."""
    return x if getattr(x, "dtype", None) is Float64 else Float32(x)


def _of_floats(name: str) -> Callable[[Any], Any]:
    def call(x: Any) -> Any:
        return getattr(cute.math, name)(_floating(x))

    return call


floor, ceil, trunc = _of_floats("floor"), _of_floats("ceil"), _of_floats("trunc")
round = _of_floats("roundeven")
sqrt, rsqrt, exp, exp2 = map(_of_floats, ("sqrt", "rsqrt", "exp", "exp2"))
expm1, log, log2, log10, log1p = map(_of_floats, ("expm1", "log", "log2", "log10", "log1p"))
erf, erfc, tanh, sin, cos = map(_of_floats, ("erf", "erfc", "tanh", "sin", "cos"))
tan, asin, acos, atan = map(_of_floats, ("tan", "asin", "acos", "atan"))
sinh, cosh, asinh, acosh, atanh = map(_of_floats, ("sinh", "cosh", "asinh", "acosh", "atanh"))
_absolute = _of_floats("abs")


def exp2_flushed(x: Any) -> Any:
    """2 to the power of x, with subnormal results flushed to 0. For exponents minus their maximum,
    whose sum is at least 1; it saves three instructions."""
    x = _floating(x)
    return exp2(x) if x.dtype is Float64 else cute.math.exp2(x, approx=True, ftz=True)


def abs(x: Any) -> Any:
    """The absolute value."""
    (x,) = met(x)
    return _absolute(x) if x.dtype.is_float else where(x < 0, -x, x)


def divide(a: Any, b: Any) -> Any:
    """A quotient of floats, within two units of the last place."""
    a, b = met(_floating(a), _floating(b))
    return a / b if a.dtype is Float64 else cute.math.div(a, b, full=True)


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    return divide(1.0, 1.0 + exp(-_floating(x)))


def silu(x: Any) -> Any:
    """x * sigmoid(x)."""
    return divide(x, 1.0 + exp(-_floating(x)))


def gelu(x: Any) -> Any:
    """x times the normal CDF of x."""
    x = _floating(x)
    half, root = type(x)(0.5), type(x)(0.7071067811865476)
    return half * x * (1.0 + erf(x * root))


def short_gelu(x: Any) -> Any:
    """gelu of a float whose result is rounded to 16 bits: within 2e-4, with half the
    instructions."""
    x = _floating(x)
    if x.dtype is Float64:
        return gelu(x)
    # The normal CDF of -|x| as a power of 2. It is 0 at |x| = 16, so infinities and NaN give the
    # same results as in gelu.
    size, power = smaller(_absolute(x), 16.0), Float32(_TAIL[0])
    for coefficient in _TAIL[1:]:
        power = power * size + coefficient
    tail = exp2_flushed(power)
    return x * where(x > 0.0, 1.0 - tail, tail)


def atan2(a: Any, b: Any) -> Any:
    """The angle of the point (b, a)."""
    return cute.math.atan2(*met(_floating(a), _floating(b)))


def isnan(x: Any) -> Any:
    """Whether a float is NaN."""
    x = _floating(x)
    return x != x


def isinf(x: Any) -> Any:
    """Whether a float is infinite."""
    return abs(_floating(x)) == INFINITY


def isfinite(x: Any) -> Any:
    """Whether a float is finite."""
    return abs(_floating(x)) < INFINITY


def maximum(a: Any, b: Any) -> Any:
    """The larger operand; NaN if either is NaN."""
    a, b = met(a, b)
    return where(isnan(a) | (a > b), a, b) if a.dtype is Float64 else _extremum("max", a, b, True)


def minimum(a: Any, b: Any) -> Any:
    """The smaller operand; NaN if either is NaN."""
    a, b = met(a, b)
    return where(isnan(a) | (a < b), a, b) if a.dtype is Float64 else _extremum("min", a, b, True)


def larger(a: Any, b: Any) -> Any:
    """The larger operand; a NaN operand is ignored."""
    a, b = met(a, b)
    return _extremum("max", a, b, False)


def smaller(a: Any, b: Any) -> Any:
    """The smaller operand; a NaN operand is ignored."""
    a, b = met(a, b)
    return _extremum("min", a, b, False)


def _extremum(name: str, a: Any, b: Any, nan: bool) -> Any:
    if a.dtype is Float32:
        return (cute.arch.fmax if name == "max" else cute.arch.fmin)(a, b, nan=nan)
    return getattr(cute.math, name)(a, b)


def relu(x: Any) -> Any:
    """The larger of x and 0."""
    return maximum(x, 0)


def square(x: Any) -> Any:
    """x * x."""
    (x,) = met(x)
    return x * x


def sign(x: Any) -> Any:
    """-1, 0 or 1."""
    (x,) = met(x)
    return x.dtype(x > 0) - x.dtype(x < 0)


def no(x: Any) -> Any:
    """The logical negation of a truth value."""
    return not x if isinstance(x, bool | int) else ~Boolean(x)


def _quotient(a: Any, b: Any) -> Any:
    """A quotient of integers, rounded toward zero; b must be neither 0 nor -1."""
    return type(a)(cutlass._mlir.dialects.arith.divsi(a.ir_value(), b.ir_value()))


def _cut(a: Any, b: Any) -> tuple[Any, Any]:
    """The remainder and the quotient of integers, rounded toward zero; the remainder by 0 and by -1
    is 0."""
    special = (b == 0) | (b == -1)
    quotient = _quotient(a, where(special, type(b)(1), b))
    return where(special, type(a)(0), a - quotient * b), quotient


def fmod(a: Any, b: Any) -> Any:
    """The remainder of a division, with the sign of a; for integers, 0 if b is 0."""
    a, b = met(a, b)
    return cute.math.rem(a, b) if a.dtype.is_float else _cut(a, b)[0]


def mod(a: Any, b: Any) -> Any:
    """The remainder of a division, with the sign of b; for integers, 0 if b is 0."""
    a, b = met(a, b)
    rest = fmod(a, b)
    return where((rest != 0) & ((rest < 0) ^ (b < 0)), rest + b, rest)


def floordiv(a: Any, b: Any) -> Any:
    """A quotient rounded down; for integers, 0 if b is 0."""
    a, b = met(a, b)
    if not a.dtype.is_float:
        rest, quotient = _cut(a, b)
        less = (rest != 0) & ((rest < 0) ^ (b < 0))
        found = where(b == -1, -a, quotient - where(less, type(a)(1), type(a)(0)))
        return where(b == 0, type(a)(0), found)
    rest = fmod(a, b)
    opposite = (rest != 0) & ((rest < 0) ^ (b < 0))
    quotient = (a - rest) / b - where(opposite, type(a)(1.0), type(a)(0.0))
    low = floor(quotient)
    return where(b == 0, a / b, where(quotient - low > 0.5, low + 1.0, low))


def pow(a: Any, b: Any) -> Any:
    """A power. For integers with a negative exponent: 0, except for bases 1 and -1."""
    a, b = met(a, b)
    if a.dtype.is_float:
        return cute.math.pow(a, b)
    return _whole_pow(a, b)


@cute.jit
def _whole_pow(a: Any, b: Any) -> Any:
    result, square_, left = type(a)(1), a, abs(b)
    while left != 0:
        result = where((left & 1) != 0, result * square_, result)
        square_ = square_ * square_
        left = left >> 1
    return where((b < 0) & (a != 1) & (a != -1), type(a)(0), result)


def shl(a: Any, b: Any) -> Any:
    """A shift to the left by the low six bits of b."""
    return Int64(a) << (Int64(b) & 63)


def shr(a: Any, b: Any) -> Any:
    """A shift to the right by the low six bits of b."""
    return Int64(a) >> (Int64(b) & 63)


def i32_from(x: Any) -> Any:
    """Converts to i32, rounded toward zero and saturated; NaN becomes 0."""
    return _whole(x, Int32, 31)


def i64_from(x: Any) -> Any:
    """Converts to i64, rounded toward zero and saturated; NaN becomes 0."""
    return _whole(x, Int64, 63)


def f8e5m2_from(x: Any) -> Any:
    """Converts to f8e5m2, rounded to nearest; out-of-range values become infinite."""
    x = Float32(x)
    near = Float8E5M2(x).bitcast(Uint8)  # the hardware saturates
    ends = where(x > 0.0, 0x7C, 0xFC)
    return Uint8(where(abs(x) >= 61440.0, ends, near)).bitcast(Float8E5M2)


def in_dtype(x: Any, dtype: type) -> Any:
    """A number converted to a type's form in memory."""
    if dtype is Float8E5M2 and getattr(x, "dtype", None) is not dtype:
        return f8e5m2_from(x)
    return x.to(dtype) if hasattr(x, "to") else dtype(x)


def _whole(x: Any, dtype: type, bits: int) -> Any:
    if isinstance(x, bool | int) or not x.dtype.is_float:
        return dtype(x)
    x = _floating(x)
    beyond = x.dtype(float(1 << bits))
    inside = (x < beyond) & (x >= -beyond)
    cut = dtype(where(inside, x, x.dtype(0.0)))
    ends = where(x > 0.0, dtype((1 << bits) - 1), dtype(-(1 << bits)))
    return where(inside, cut, where(isnan(x), dtype(0), ends))


def round_tf32(x: Any) -> Any:
    """An f32 rounded to tf32: to nearest, ties to even."""
    bits = Uint32(cutlass.cute.arch.cvt_f32_tf32(Float32(x)).ir_value())
    return bits.bitcast(Float32)


def uniform(seed: Any, counter: Any) -> Any:
    """A pseudorandom multiple of 2^-24 in [0, 1) from a seed and a counter: Philox4x32-10 (Salmon
    et al., SC 2011)."""
    low, high = (lambda x: Uint32(Uint64(x) & 0xFFFFFFFF)), (lambda x: Uint32(Uint64(x) >> 32))
    c0, c1, c2, c3 = low(Int64(counter)), high(Int64(counter)), Uint32(0), Uint32(0)
    k0, k1 = low(Int64(seed)), high(Int64(seed))
    for _ in range(10):
        first, second = Uint64(c0) * 0xD2511F53, Uint64(c2) * 0xCD9E8D57
        c0, c1, c2, c3 = high(second) ^ c1 ^ k0, low(second), high(first) ^ c3 ^ k1, low(first)
        k0, k1 = k0 + Uint32(0x9E3779B9), k1 + Uint32(0xBB67AE85)
    return Float32(c0 >> 8) * Float32(5.9604644775390625e-8)
