"""Memory, layouts and tensors with the semantics of CuTe DSL, as Python values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from backends.cutedsl.testing.numbers import BFloat16, Boolean, Eight, Number, Uint8

RMEM, SMEM, GMEM = "rmem", "smem", "gmem"


def flat(shape: Any) -> list[int]:
    """The numbers of a nested tuple."""
    return [x for part in shape for x in flat(part)] if isinstance(shape, tuple) else [int(shape)]


class Layout:
    """shape : stride, with the same nesting. An integer coordinate is column-major."""

    def __init__(self, shape: Any, stride: Any = None):
        self.shape, self.stride = shape, _compact(shape) if stride is None else stride

    def __call__(self, at: Any) -> Any:
        return place(at, self.shape, self.stride)


def _compact(shape: Any, first: int = 1) -> Any:
    if not isinstance(shape, tuple):
        return first
    found = []
    for part in shape:
        found.append(_compact(part, first))
        first *= int(np.prod(flat(part)))
    return tuple(found)


def place(at: Any, shape: Any, stride: Any) -> Any:
    """The offset of a coordinate."""
    if not isinstance(shape, tuple):
        return int(at) * int(stride)
    if isinstance(at, tuple):
        if len(at) != len(shape):
            raise IndexError(f"coordinate {at} of shape {shape}")
        return sum(place(a, s, d) for a, s, d in zip(at, shape, stride, strict=True))
    found, rest = 0, int(at)
    for n, (part, apart) in enumerate(zip(shape, stride, strict=True)):
        size = int(np.prod(flat(part)))
        own = rest if n == len(shape) - 1 else rest % size
        found += place(own, part, apart)
        rest //= size
    return found


class Swizzle:
    """Exchanges bits of an address, by XOR."""

    def __init__(self, bits: int, base: int, shift: int):
        self.mask, self.shift = ((1 << bits) - 1) << (base + shift), shift

    def __call__(self, address: int) -> int:
        return address ^ (address & self.mask) >> self.shift


class Pointer:
    """A pointer. Registers are cells, each of which holds a number or nothing; other memory is bytes."""

    def __init__(self, memory: Any, offset: int, dtype: Any, space: str, swizzle: Any = None):
        self.memory, self.offset, self.dtype, self.space = memory, offset, dtype, space
        self.swizzle = swizzle

    @property
    def value(self) -> Pointer:
        """Itself, because there is no compiler."""
        return self

    @property
    def size(self) -> int:
        """The bytes of an element."""
        return 1 if self.space == RMEM else 1 if self.dtype is Boolean else self.dtype.width // 8

    def __add__(self, n: Any) -> Pointer:
        return Pointer(
            self.memory, self.offset + int(n) * self.size, self.dtype, self.space, self.swizzle
        )

    def to_llvm_ptr(self) -> Pointer:
        """The same pointer without its swizzle, which hardware instructions do not apply."""
        return Pointer(self.memory, self.offset, self.dtype, self.space)

    def address(self) -> int:
        """The index of the byte, or of the cell in registers."""
        return self.swizzle(self.offset) if self.swizzle else self.offset

    def load(self) -> Number:
        """The element at the pointer."""
        at = self.address()
        if self.space == RMEM:
            held = self.memory[at]
            if held is None:
                raise ValueError("a register is read that nothing was written to")
            return held
        if not 0 <= at <= len(self.memory) - self.size:
            raise IndexError(f"byte {at} of {len(self.memory)} of {self.space}")
        if at % self.size:
            raise IndexError(f"byte {at} is not aligned to {self.size}")
        bits = self.memory[at : at + self.size]
        if self.dtype is BFloat16:
            return BFloat16((bits.view(np.uint16).astype(np.uint32) << 16).view(np.float32)[0])
        if issubclass(self.dtype, Eight):
            return self.dtype.of_code(int(bits[0]))
        return self.dtype(bits.view(self.dtype.kind)[0])

    def store(self, x: Number) -> None:
        """Writes the element at the pointer."""
        if not isinstance(x, Number) or x.dtype is not self.dtype:
            raise TypeError(f"{x!r} is stored as {self.dtype.__name__}")
        at = self.address()
        if self.space == RMEM:
            self.memory[at] = x
            return
        if not 0 <= at <= len(self.memory) - self.size:
            raise IndexError(f"byte {at} of {len(self.memory)} of {self.space}")
        if at % self.size:
            raise IndexError(f"byte {at} is not aligned to {self.size}")
        if self.dtype is BFloat16:
            made = np.asarray([x.value], np.float32).view(np.uint32) >> 16
            made = made.astype(np.uint16)
        elif issubclass(self.dtype, Eight):
            made = np.asarray([x.bitcast(Uint8).value])
        else:
            made = np.asarray([x.value], self.dtype.kind)
        self.memory[at : at + self.size] = made.view(np.uint8)


class Tensor:
    """Elements in memory, addressed by a layout."""

    def __init__(self, iterator: Pointer, layout: Layout):
        self.iterator, self.layout = iterator, layout

    @property
    def element_type(self) -> Any:
        return self.iterator.dtype

    @property
    def memspace(self) -> str:
        return self.iterator.space

    def __getitem__(self, at: Any) -> Number:
        return (self.iterator + self.layout(at)).load()

    def __setitem__(self, at: Any, x: Any) -> None:
        (self.iterator + self.layout(at)).store(x)


def tensor(iterator: Pointer, layout: Any) -> Tensor:
    """A tensor with a layout, or with a number of contiguous elements."""
    return Tensor(iterator, layout if isinstance(layout, Layout) else Layout(layout))


def registers(layout: Any, dtype: Any) -> Tensor:
    """Uninitialised registers."""
    layout = layout if isinstance(layout, Layout) else Layout(layout)
    last = sum((s - 1) * d for s, d in zip(flat(layout.shape), flat(layout.stride), strict=True))
    return Tensor(Pointer([None] * (last + 1), 0, dtype, RMEM), layout)


def autovec_copy(source: Tensor, to: Tensor) -> None:
    """Copies element by element. In memory, the start must be aligned to the vector width."""
    count = size(source)
    if count != size(to):
        raise ValueError(f"{count} elements are copied to {size(to)}")
    for side in (source, to):
        whole = min(16, count * side.element_type.width // 8)
        if side.memspace != RMEM and side.iterator.address() % whole:
            raise IndexError(f"byte {side.iterator.address()} is not aligned to {whole}")
    for n in range(count):
        to[n] = source[n]


def size(x: Any) -> int:
    """The number of elements of a tensor or a layout."""
    layout = x.layout if isinstance(x, Tensor) else x
    return int(np.prod(flat(layout.shape)))


def rank(layout: Layout) -> int:
    """The number of modes of a layout."""
    return len(layout.shape) if isinstance(layout.shape, tuple) else 1


def words(places: Sequence[int]) -> tuple[int, ...]:
    """The places as Python integers."""
    return tuple(int(p) for p in places)
