"""The memory guard: an interpreted kernel may access only its tensors.

Each tensor gets a virtual address far from all others, with no memory behind it. An address
computed from it identifies that tensor, however far out of bounds it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_ubyte
from dataclasses import dataclass
from typing import Any

import numpy as np

from backends.triton.interpret.traffic import AccessLog, Conflict

# Address bits from here on hold the tensor's number, so 2**43 bytes on either side belong to it.
APART = 44
_MIDDLE = 1 << (APART - 1)


class Stray(Exception):
    """An access outside of all tensors, or a write to an input; the message says where."""


@dataclass(frozen=True, slots=True)
class Region:
    """A tensor's memory."""

    name: str
    address: int  # in this process
    bytes: int
    writable: bool  # whether a kernel may write it


class MemoryGuard:
    """Wraps Triton's memory access (`load`, `store`, atomics) with bounds checks.

    kernel: the name of the running one, for messages.
    """

    def __init__(self, regions: Sequence[Region], memory: Any):
        self.regions = list(regions)
        self.memory = memory
        self.kernel = ""
        self.traffic: AccessLog | None = None  # set while programs run in lockstep
        # Numbers start at 1, so that a null pointer belongs to no tensor.
        self.addresses = np.array([0, *(r.address for r in regions)], np.uint64)
        self.bytes = np.array([0, *(r.bytes for r in regions)], np.int64)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.memory, name)

    def address(self, name: str) -> int:
        """The virtual address of a tensor; divisible by 16, as on a device."""
        number = next(n for n, r in enumerate(self.regions, 1) if r.name == name)
        return (number << APART) + _MIDDLE

    def load(self, at: np.ndarray, mask: np.ndarray, other: np.ndarray, dtype: Any) -> Any:
        """Triton's load with bounds checks; masked-out addresses may be anywhere."""
        dtype = np.dtype(dtype)
        # Fast path: aligned elements of one tensor are taken through a numpy view.
        number = self._only(at)
        if not number or self.bytes[number] % dtype.itemsize or not self.bytes[number]:
            at = self._real(at, mask, dtype.itemsize, "reads")
            return self.memory.load(at, mask, other, dtype)
        offsets = self._within(number, at, mask, dtype.itemsize, "reads")
        places, rest = np.divmod(offsets, dtype.itemsize)
        if (rest != 0).any():
            at = offsets.view(np.uint64) + self.addresses[number]
            return self.memory.load(at, mask, other, dtype)
        held = self._memory(self.regions[number - 1]).view(dtype)
        return np.where(mask, held.take(places, mode="clip"), other)

    def store(self, at: np.ndarray, value: np.ndarray, mask: np.ndarray) -> Any:
        """Triton's store with bounds checks; inputs are read-only."""
        at = self._real(at, mask, value.dtype.itemsize, "writes")
        return self.memory.store(at, value, mask)

    def atomic_rmw(
        self, what: Any, at: np.ndarray, value: np.ndarray, mask: np.ndarray, order: Any
    ) -> Any:
        self._in_order()
        at = self._real(at, mask, value.dtype.itemsize, "writes")
        return self.memory.atomic_rmw(what, at, value, mask, order)

    def atomic_cas(
        self, at: np.ndarray, compared: np.ndarray, value: np.ndarray, order: Any
    ) -> Any:
        self._in_order()
        everywhere = np.ones_like(at, dtype=bool)
        at = self._real(at, everywhere, value.dtype.itemsize, "writes")
        return self.memory.atomic_cas(at, compared, value, order)

    def _in_order(self) -> None:
        """Raises Conflict where programs run together, as an atomic's result may depend on their order."""
        if self.traffic:
            raise Conflict

    def _real(self, at: np.ndarray, mask: np.ndarray, size: int, verb: str) -> np.ndarray:
        """The process addresses of virtual ones. Raises Stray where an unmasked address is out of bounds."""
        if number := self._only(at):
            offsets = self._within(number, at, mask, size, verb)
            return offsets.view(np.uint64) + self.addresses[number]
        if self.traffic:
            raise Conflict
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

    def _only(self, at: np.ndarray) -> int:
        """The number of the single tensor to which all addresses, including masked ones, belong; 0
        where there is none."""
        first, last = int(at.min()) >> APART, int(at.max()) >> APART
        return first if first == last and first <= len(self.regions) else 0

    def _within(
        self, number: int, at: np.ndarray, mask: np.ndarray, size: int, verb: str
    ) -> np.ndarray:
        """Byte offsets within one tensor. Raises Stray where an unmasked one is out of bounds."""
        region = self.regions[number - 1]
        offsets = (at - np.uint64((number << APART) + _MIDDLE)).view(np.int64)
        if offsets.min() < 0 or offsets.max() > region.bytes - size:
            wrong = ((offsets < 0) | (offsets > region.bytes - size)) & mask
            if wrong.any():
                raise Stray(self._outside(at, wrong, size, verb, int(np.count_nonzero(mask))))
        if verb == "writes" and not region.writable and mask.any():
            self._refuse_inputs(np.array([number]))
        if self.traffic and region.writable:
            seen = self.traffic.write if verb == "writes" else self.traffic.read
            seen(number, size, region.bytes, offsets, mask)
        return offsets

    def kept(self) -> list[np.ndarray]:
        """A copy of all writable memory."""
        return [memory.copy() for memory in self._written()]

    def put_back(self, kept: Sequence[np.ndarray]) -> None:
        """Restores writable memory from `kept`."""
        for memory, before in zip(self._written(), kept, strict=True):
            memory[:] = before

    def _written(self) -> list[np.ndarray]:
        return [self._memory(r) for r in self.regions if r.writable and r.bytes]

    @staticmethod
    def _memory(region: Region) -> np.ndarray:
        return np.frombuffer((c_ubyte * region.bytes).from_address(region.address), np.uint8)

    def _refuse_inputs(self, numbers: np.ndarray) -> None:
        for number in np.unique(numbers):
            if not self.regions[number - 1].writable:
                raise Stray(f"{self.kernel} writes to its input `{self.regions[number - 1].name}`")

    def _outside(self, at: np.ndarray, wrong: np.ndarray, size: int, verb: str, used: int) -> str:
        first = int(np.broadcast_to(at, wrong.shape)[wrong][0])
        number, threads = first >> APART, int(np.count_nonzero(wrong))
        share = f"{threads} of {used} threads"
        if not 0 < number <= len(self.regions):
            return f"{self.kernel} {verb} at no tensor's address ({share})"
        region = self.regions[number - 1]
        offset = (first & ((1 << APART) - 1)) - _MIDDLE
        return (
            f"{self.kernel} {verb} outside `{region.name}`: {size} bytes at byte {offset}; "
            f"it has {region.bytes} ({share})"
        )
