"""Arrays between numpy and the device: bf16 and 8-bit floats as bits, outputs poisoned before a
run, fences and inputs checked after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np

from backends.backend import Arrays, Sizes
from backends.fences import require_beside, require_untouched
from backends.shared.launches import tensors
from ir.nest.nest import LoopNest, Parameter
from ir.sizes import bind, value
from ir.spec import EIGHT, SCALE, SMALL, Tensor

_DTYPES = {
    "f64": np.float64,
    "f32": np.float32,
    "tf32": np.float32,
    "f16": np.float16,
    "bf16": np.uint16,
    "i32": np.int32,
    "i64": np.int64,
    "i16": np.int16,
    "i8": np.int8,
    "u8": np.uint8,
    "b8": np.uint8,
    **dict.fromkeys(SMALL, np.uint8),
}
FENCE = 4096  # bytes before and after a buffer, apart from its alignment
ALIGNED = 64
_FENCE_BITS = 0xFF  # each byte of a fence: NaN in all float dtypes
_BAD_BF16 = 0x7FC1  # a NaN
_BAD_EIGHT = 0x7F  # NaN in each 8-bit float dtype
_BAD_SCALE = 0xFF
_BAD_INTEGER = -1_234_567


def to_device(array: np.ndarray, dtype: str) -> np.ndarray:
    """A contiguous copy in the device's form. array: any shape; bf16 and 8-bit floats are given as
    f32 values."""
    if dtype == "bf16":
        bits = np.array(array, np.float32, order="C").view(np.uint32)
        return np.asarray(bits >> 16).astype(np.uint16)
    if dtype in EIGHT:
        values, given = _values(dtype)[:128], np.asarray(array, np.float32)
        known = np.searchsorted(values[: np.isfinite(values).sum()], np.abs(given))
        code = np.where(np.isnan(given), _BAD_EIGHT, known)
        return np.array(code | np.signbit(given) << 7, np.uint8, order="C")
    if dtype == SCALE:
        given = np.asarray(array, np.float32)
        code = np.where(np.isnan(given), _BAD_SCALE, np.frexp(given)[1] + 126)
        return np.array(code, np.uint8, order="C")
    return np.array(array, _DTYPES[dtype], order="C", copy=True)


def from_device(array: np.ndarray, dtype: str) -> np.ndarray:
    """The array in numpy's form; bf16 and 8-bit floats become f32."""
    if dtype == "bf16":
        return np.asarray(array.astype(np.uint32) << 16).view(np.float32)
    if dtype in EIGHT:
        return _values(dtype)[array]
    if dtype == SCALE:
        powers = np.ldexp(np.float32(1), np.minimum(array, 254).astype(np.int32) - 127)
        return np.where(array == _BAD_SCALE, np.float32(np.nan), powers)
    return array.astype(bool) if dtype == "b8" else array


@cache
def _values(dtype: str) -> np.ndarray:
    """The value of each code of an 8-bit float dtype. f8e4m3 has no infinity."""
    code = np.arange(128)
    fraction, bias = {"f8e4m3": (3, 7), "f8e5m2": (2, 15)}[dtype]
    exponent, part = code >> fraction, code % (1 << fraction)
    normal = exponent > 0
    values = np.ldexp(part + (normal << fraction), np.maximum(exponent, 1) - bias - fraction)
    if dtype == "f8e5m2":
        values = np.where(exponent == 31, np.where(part == 0, np.inf, np.nan), values)
    else:
        values[_BAD_EIGHT] = np.nan
    return np.concatenate([values, -values]).astype(np.float32)


def poisoned(parameter: Parameter, sizes: Mapping[str, int]) -> np.ndarray:
    """A poisoned buffer: NaN, or a number that no test produces."""
    return _blank(parameter.dtype, tuple(value(e, sizes) for e in parameter.shape))


def _blank(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    if dtype == "bf16":
        return np.full(shape, _BAD_BF16, np.uint16)
    if dtype in EIGHT:
        return np.full(shape, _BAD_EIGHT, np.uint8)
    if dtype == SCALE:
        return np.full(shape, _BAD_SCALE, np.uint8)
    if dtype == "b8":
        return np.full(shape, 0xA5, np.uint8)
    held = _DTYPES[dtype]
    if np.issubdtype(held, np.floating):
        return np.full(shape, np.nan, held)
    return np.full(shape, _BAD_INTEGER).astype(held)  # wraps to the dtype


def output(tensor: Tensor, memory: np.ndarray) -> np.ndarray:
    """An output in the dtype of the spec, from memory that was poisoned before the run.

    Of a tensor that is a part of a larger one, the part. Raises BackendError("check") if the kernel
    wrote outside of it.
    """
    if tensor.part is None:
        return from_device(memory, tensor.dtype)
    blank, beside = _blank(tensor.dtype, memory.shape), memory.copy()
    beside[tensor.window] = blank[tensor.window]
    require_beside(tensor.name, beside.tobytes() == blank.tobytes())
    return from_device(np.ascontiguousarray(memory[tensor.window]), tensor.dtype)


def _new(count: int) -> np.ndarray:
    return np.empty(count, np.uint8)


def fenced_bytes(count: int) -> int:
    """The bytes of a buffer with its fences."""
    return count + 2 * FENCE


class Fenced:
    """A buffer between two fences with a known pattern, which shows writes out of bounds."""

    def __init__(self, given: np.ndarray, room: Callable[[int], np.ndarray] = _new):
        """room: allocates a number of bytes."""
        held = room(fenced_bytes(given.nbytes))
        held[...] = _FENCE_BITS
        start = -held.ctypes.data % ALIGNED
        self.ends = (
            held[: start + FENCE - ALIGNED],
            held[start + FENCE - ALIGNED + given.nbytes :],
        )
        inner = held[start + FENCE - ALIGNED :][: given.nbytes]
        self.array = inner.view(given.dtype).reshape(given.shape)
        self.array[...] = given

    def whole(self) -> bool:
        """Whether the fences are unchanged."""
        return all(bool((end == _FENCE_BITS).all()) for end in self.ends)

    def holds(self, given: np.ndarray) -> bool:
        """Whether its bits equal those of an array of the same shape and dtype."""
        return self.array.tobytes() == given.tobytes()


def placed(nest: LoopNest, sizes: Sizes, inputs: Arrays) -> dict[str, Fenced]:
    """All tensors of a nest between fences: inputs as given, the others poisoned."""
    (first,) = on_device(nest, sizes, given(nest, inputs), 1)
    return {name: Fenced(array) for name, array in first.items()}


def given(nest: LoopNest, inputs: Arrays) -> dict[str, np.ndarray]:
    """The inputs that a nest reads, in the device's form."""
    return {p.name: to_device(inputs[p.name], p.dtype) for p in tensors(nest) if p.role == "input"}


def on_device(
    nest: LoopNest, sizes: Sizes, inputs: Mapping[str, np.ndarray], count: int
) -> list[dict[str, np.ndarray]]:
    """The initial contents of a nest's tensors for a number of runs: all tensors for the first run,
    and only the written ones for each further run.

    inputs: in the device's form.
    """
    blank = unwritten(nest, sizes)
    held = {**inputs, **blank}
    first = {p.name: held[p.name] for p in tensors(nest)}
    return [first, *(blank for _ in range(count - 1))]


def unwritten(nest: LoopNest, sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """The initial contents of every tensor of a nest except its inputs."""
    bound = bind(nest.spec, sizes)
    return {p.name: poisoned(p, bound) for p in tensors(nest) if p.role != "input"}


def results(nest: LoopNest, buffers: Mapping[str, Fenced], inputs: Arrays) -> dict[str, np.ndarray]:
    """The outputs after a run, in the dtypes of the spec. Raises BackendError("check") if anything
    else was written."""
    given = ((t.name, to_device(inputs[t.name], t.dtype)) for t in nest.spec.inputs)
    require_untouched(buffers, ((name, x) for name, x in given if name in buffers))
    return {t.name: output(t, buffers[t.name].array) for t in nest.spec.outputs}
