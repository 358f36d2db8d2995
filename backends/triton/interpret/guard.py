"""A guard on memory: a kernel under interpretation may touch nothing but its tensors.

Every tensor is given an address of its own, far from all others, that holds no memory. What a
kernel computes with such an address leads back to one tensor, however far it strays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

APART = 44  # the tensor's number stands in the bits from here on; 2**43 bytes either way are its
_MIDDLE = 1 << (APART - 1)


class Stray(Exception):
    """An access outside all tensors, or a write to an input; the message says where."""


@dataclass(frozen=True, slots=True)
class Region:
    """A tensor's memory. address: in the process.  writable: whether a kernel may write it."""

    name: str
    address: int
    bytes: int
    writable: bool


class Guard:
    """Stands before triton's memory access (`load`, `store`, atomics), and is asked instead.

    kernel: the one that runs, for messages.
    """

    def __init__(self, regions: Sequence[Region], memory: Any):
        self.regions = list(regions)
        self.memory = memory
        self.kernel = ""
        # Numbers from 1, so that a null pointer belongs to none.
        self.addresses = np.array([0, *(r.address for r in regions)], np.uint64)
        self.bytes = np.array([0, *(r.bytes for r in regions)], np.int64)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.memory, name)

    def address(self, name: str) -> int:
        """The address that a kernel is given for a tensor; divisible by 16 as a device's are."""
        number = next(n for n, r in enumerate(self.regions, 1) if r.name == name)
        return (number << APART) + _MIDDLE

    def load(self, at: np.ndarray, mask: np.ndarray, other: np.ndarray, dtype: Any) -> Any:
        at = self._real(at, mask, np.dtype(dtype).itemsize, "reads")
        return self.memory.load(at, mask, other, dtype)

    def store(self, at: np.ndarray, value: np.ndarray, mask: np.ndarray) -> Any:
        at = self._real(at, mask, value.dtype.itemsize, "writes")
        return self.memory.store(at, value, mask)

    def atomic_rmw(
        self, what: Any, at: np.ndarray, value: np.ndarray, mask: np.ndarray, order: Any
    ) -> Any:
        at = self._real(at, mask, value.dtype.itemsize, "writes")
        return self.memory.atomic_rmw(what, at, value, mask, order)

    def atomic_cas(
        self, at: np.ndarray, compared: np.ndarray, value: np.ndarray, order: Any
    ) -> Any:
        everywhere = np.ones_like(at, dtype=bool)
        at = self._real(at, everywhere, value.dtype.itemsize, "writes")
        return self.memory.atomic_cas(at, compared, value, order)

    def _real(self, at: np.ndarray, mask: np.ndarray, size: int, verb: str) -> np.ndarray:
        """The process's addresses of a kernel's; Stray where one that is used lies outside."""
        numbers = (at >> np.uint64(APART)).astype(np.int64)
        known = (numbers > 0) & (numbers <= len(self.regions))
        numbers = np.where(known, numbers, 0)
        offsets = (at & np.uint64((1 << APART) - 1)).astype(np.int64) - _MIDDLE
        inside = known & (offsets >= 0) & (offsets <= self.bytes[numbers] - size)
        wrong = mask & ~inside
        if wrong.any():
            raise Stray(self._outside(at, wrong, size, verb, int(np.count_nonzero(mask))))
        if verb == "writes":
            self._refuse_inputs(numbers[np.broadcast_to(mask, numbers.shape)])
        return self.addresses[numbers] + offsets.astype(np.uint64)

    def _refuse_inputs(self, numbers: np.ndarray) -> None:
        for number in np.unique(numbers):
            if not self.regions[number - 1].writable:
                raise Stray(f"{self.kernel} writes to its input `{self.regions[number - 1].name}`")

    def _outside(
        self, at: np.ndarray, wrong: np.ndarray, size: int, verb: str, used: int
    ) -> str:
        first = int(np.broadcast_to(at, wrong.shape)[wrong][0])
        number, lanes = first >> APART, int(np.count_nonzero(wrong))
        share = f"{lanes} of {used} lanes"
        if not 0 < number <= len(self.regions):
            return f"{self.kernel} {verb} at no tensor's address ({share})"
        region = self.regions[number - 1]
        offset = (first & ((1 << APART) - 1)) - _MIDDLE
        return (
            f"{self.kernel} {verb} outside `{region.name}`: {size} bytes at byte {offset}; "
            f"it has {region.bytes} ({share})"
        )
