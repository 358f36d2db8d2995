"""Repairs of Triton's interpreter, for a process that does nothing else.

Formats that numpy lacks (bf16, fp8) are held as float32: loads widen, stores narrow, and each
operation rounds its result. Triton's own interpreter computes on their bit patterns instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
import triton.language as tl
from triton.runtime import interpreter

from backends.triton.interpret.lockstep import Lockstep
from ir.reference.rounding import round_to

Handle: TypeAlias = interpreter.TensorHandle

_NARROW = {
    tl.bfloat16: (torch.bfloat16, np.uint16),
    tl.float8e4nv: (torch.float8_e4m3fn, np.uint8),
    tl.float8e5: (torch.float8_e5m2, np.uint8),
    tl.float8e4b8: (torch.float8_e4m3fnuz, np.uint8),
    tl.float8e5b16: (torch.float8_e5m2fnuz, np.uint8),
}
_HELD: dict[str, np.dtype] = {}  # numpy's dtype by the name of Triton's
_numpy_dtype = interpreter._get_np_dtype
_RTZ = interpreter._ir.ROUNDING_MODE.RTZ


def is_narrow(dtype: tl.dtype) -> bool:
    """Whether numpy lacks a format."""
    return type(dtype) is tl.dtype and dtype in _NARROW


def held_as(dtype: tl.dtype) -> np.dtype:
    """The numpy dtype that holds a Triton dtype."""
    scalar = dtype.scalar
    name = scalar.name  # Triton's own lookup hashes all dtypes on each call
    if name not in _HELD:
        _HELD[name] = np.dtype(np.float32) if is_narrow(scalar) else _numpy_dtype(scalar)
    return _HELD[name]


def widened(raw: np.ndarray, dtype: tl.dtype) -> np.ndarray:
    """Bit patterns of a narrow format as float32."""
    if dtype == tl.bfloat16:
        return (raw.astype(np.uint32) << 16).view(np.float32)
    flat = torch.from_numpy(np.ascontiguousarray(raw).reshape(-1))
    return flat.view(_NARROW[dtype][0]).float().numpy().reshape(raw.shape)


def narrowed(held: np.ndarray, dtype: tl.dtype) -> np.ndarray:
    """float32 values as bit patterns of a narrow format."""
    if dtype == tl.bfloat16:
        return (np.ascontiguousarray(held).view(np.uint32) >> 16).astype(np.uint16)
    flat = torch.from_numpy(np.ascontiguousarray(held).reshape(-1)).to(_NARROW[dtype][0])
    return flat.view(torch.uint8).numpy().reshape(held.shape)


def rounded(values: np.ndarray, dtype: tl.dtype, toward_zero: bool = False) -> np.ndarray:
    """Values rounded to a Triton dtype, to nearest, ties to even."""
    if not is_narrow(dtype):
        return values.astype(held_as(dtype), copy=False)
    values = np.ascontiguousarray(values, np.float32)
    if toward_zero:
        if dtype != tl.bfloat16:
            raise NotImplementedError(f"rounding of {dtype} toward zero")
        return (values.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    if dtype == tl.bfloat16:
        return round_to(values, "bf16")
    return widened(narrowed(values, dtype), dtype)


def handle(data: np.ndarray, dtype: tl.dtype) -> Handle:
    """A handle of an operation's result, rounded to its dtype; booleans are i1."""
    if data.dtype == np.bool_:
        return Handle(data, tl.int1)
    if is_narrow(dtype) or data.dtype != held_as(dtype):
        data = rounded(data, dtype)
    return Handle(data, dtype)


class Builder(Lockstep):
    """Triton's interpreter with corrections of the operations that it gets wrong."""

    def __init__(self, precision: str, allowed: Sequence[str]) -> None:
        """precision: of f32 matmuls that do not state one. allowed: those that the target
        supports."""
        super().__init__()
        # Overflow checks triple the cost of integers; the memory guard finds stray addresses
        # anyway.
        self.options = interpreter.InterpreterOptions(
            sanitize_overflow=False,
            default_dot_input_precision=precision,
            allowed_dot_input_precisions=tuple(allowed),
        )

    def get_bf16(self, value: float) -> Handle:
        return Handle(rounded(np.array([value], np.float32), tl.bfloat16), tl.bfloat16)

    def create_masked_load(
        self, ptrs: Handle, mask: Handle, other: Handle | None, *rest: Any, **hints: Any
    ) -> Handle:
        dtype = ptrs.get_element_ty()
        raw = _NARROW[dtype][1] if is_narrow(dtype) else held_as(dtype)
        bits = np.zeros(1, raw)
        if other is not None:
            bits = narrowed(other.data, dtype) if is_narrow(dtype) else other.data.astype(raw)
        at, chosen, filled = np.broadcast_arrays(ptrs.data, mask.data, bits)
        filled = np.ascontiguousarray(filled)
        got = interpreter._interpreter.load(at, chosen, filled, np.dtype(raw))
        return Handle(widened(got, dtype) if is_narrow(dtype) else got, dtype)

    def create_masked_store(
        self, ptrs: Handle, value: Handle, mask: Handle, *rest: Any, **hints: Any
    ) -> Any:
        dtype = ptrs.get_element_ty()
        data = value.data
        bits = narrowed(data, dtype) if is_narrow(dtype) else data.astype(held_as(dtype))
        at, bits, chosen = np.broadcast_arrays(ptrs.data, bits, mask.data)
        return interpreter._interpreter.store(at, np.ascontiguousarray(bits), chosen)

    def create_atomic_rmw(self, op: Any, ptr: Handle, val: Handle, *rest: Any) -> Handle:
        if is_narrow(ptr.get_element_ty()):
            raise NotImplementedError(f"an atomic operation on {ptr.get_element_ty()}")
        return super().create_atomic_rmw(op, ptr, val, *rest)

    def cast_impl(self, src: Handle, dst_type: tl.dtype) -> Handle:
        return Handle(rounded(src.data, dst_type.scalar), dst_type.scalar)

    def create_fp_to_fp(self, src: Handle, dst_type: tl.dtype, rounding: Any) -> Handle:
        dtype = dst_type.scalar
        return Handle(rounded(src.data, dtype, rounding == _RTZ), dtype)

    def create_fp_to_si(self, src: Handle, dst_type: tl.dtype) -> Handle:
        """Truncates toward zero and clamps to the range of the result; NaN becomes 0, as on
        GPUs."""
        dtype = held_as(dst_type)
        limits = np.iinfo(dtype)
        whole = np.nan_to_num(np.trunc(src.data.astype(np.float64)), nan=0.0)
        low, high = whole <= float(limits.min), whole >= float(limits.max)
        data = np.where(low | high, 0, whole).astype(dtype)
        data = np.where(low, limits.min, np.where(high, limits.max, data)).astype(dtype)
        return Handle(data, dst_type.scalar)

    create_fp_to_ui = create_fp_to_si

    def create_bitcast(self, src: Handle, dst_type: tl.dtype) -> Handle:
        dtype = dst_type.scalar
        raw = narrowed(src.data, src.dtype.scalar) if is_narrow(src.dtype.scalar) else src.data
        raw = np.ascontiguousarray(raw)
        if is_narrow(dtype):
            return Handle(widened(raw.view(_NARROW[dtype][1]), dtype), dtype)
        return Handle(raw.view(held_as(dst_type)), dtype)

    create_int_to_ptr = create_bitcast
    create_ptr_to_int = create_bitcast

    def unary_op(self, arg: Handle, op: Callable) -> Handle:
        return handle(op(arg.data), arg.dtype.scalar)

    def binary_op(self, lhs: Handle, rhs: Handle, op: Callable) -> Handle:
        return handle(op(lhs.data, rhs.data), lhs.dtype.scalar)

    def ternary_op(self, lhs: Handle, rhs: Handle, other: Handle, op: Callable) -> Handle:
        return handle(op(lhs.data, rhs.data, other.data), other.dtype.scalar)

    def create_fma(self, x: Handle, y: Handle, z: Handle) -> Handle:
        """Rounded once, where the format is narrow enough for float64 to be exact."""
        exact = x.data.astype(np.float64) * y.data.astype(np.float64) + z.data
        return handle(exact, z.dtype.scalar)

    def create_fabs(self, arg: Handle) -> Handle:
        return self.unary_op(arg, np.abs)

    def create_erf(self, arg: Handle) -> Handle:
        return self.unary_op(arg, erf)

    def create_rsqrt(self, arg: Handle) -> Handle:
        return self.unary_op(arg, lambda x: (1 / np.sqrt(x)).astype(x.dtype))

    def create_maxnumf(self, lhs: Handle, rhs: Handle) -> Handle:
        return self.binary_op(lhs, rhs, np.fmax)

    def create_minnumf(self, lhs: Handle, rhs: Handle) -> Handle:
        return self.binary_op(lhs, rhs, np.fmin)

    def create_clampf(self, arg: Handle, low: Handle, high: Handle, nans: Any) -> Handle:
        if nans == interpreter._ir.PROPAGATE_NAN.ALL:
            return self.ternary_op(arg, low, high, np.clip)
        return self.ternary_op(arg, low, high, lambda x, a, b: np.fmin(np.fmax(x, a), b))

    def create_dot(self, a: Handle, b: Handle, d: Handle, precision: Any, imprecise: int) -> Handle:
        """The matmul of operands as the matrix unit takes them, accumulated in d's dtype."""
        total = d.data
        for left, right in _factors(a.data, b.data, str(precision).rpartition(".")[2]):
            total = np.matmul(left, right, dtype=d.data.dtype) + total
        return handle(total, d.dtype.scalar)


def _factors(a: np.ndarray, b: np.ndarray, precision: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """The matmuls whose sum is one in split precision: an f32 operand is a sum of parts that the
    matrix unit can hold."""
    if a.dtype != np.float32 or precision == "IEEE":
        return [(a, b)]
    name, _, products = precision.lower().partition("x")
    parts = {"": 1, "3": 2, "6": 3}[products]
    left, right = _parts(a, name, parts), _parts(b, name, parts)
    pairs = [(i, j) for i in range(parts) for j in range(parts) if i + j < parts]
    return [(left[i], right[j]) for i, j in sorted(pairs, key=sum, reverse=True)]


def _parts(x: np.ndarray, dtype: str, count: int) -> list[np.ndarray]:
    found = []
    for _ in range(count):
        found.append(round_to(x, dtype))
        x = x - found[-1]
    return found


def erf(x: np.ndarray) -> np.ndarray:
    """The error function, in x's dtype."""
    return torch.erf(torch.from_numpy(np.array(x, order="C"))).numpy()
