"""Block pointers and tensor descriptors of many programs, resolved to addresses and masks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeAlias

import numpy as np
from triton.runtime import interpreter

Handle: TypeAlias = interpreter.TensorHandle
ALIGNED = 16  # bytes: alignment that a descriptor requires


def addresses(
    base: Handle,
    offsets: Sequence[np.ndarray],
    strides: Sequence[Handle],
    shape: Sequence[Handle],
    checked: Collection[int],
) -> tuple[Handle, np.ndarray]:
    """The addresses of a block's elements, and a mask of those in bounds.

    offsets: per dimension, the indices of each program, [programs, elements]. checked: the
    dimensions whose bounds are checked.
    """
    rank = len(offsets)
    size = base.get_element_ty().primitive_bitwidth // 8
    at, inside = _lifted(base.data, rank), np.ones((1,) * (rank + 1), bool)
    for dim, off in enumerate(offsets):
        off = off.reshape(len(off), *(-1 if d == dim else 1 for d in range(rank)))
        at = at + (size * off * _lifted(strides[dim].data, rank)).astype(np.uint64)
        if dim in checked:
            inside = inside & (off >= 0) & (off < _lifted(shape[dim].data, rank))
    at, inside = np.broadcast_arrays(at, inside)
    return Handle(at, base.dtype.scalar), inside


def _lifted(data: np.ndarray, rank: int) -> np.ndarray:
    return data.reshape(-1, *(1,) * rank)


def _run(start: Handle, count: int) -> np.ndarray:
    return start.data.reshape(-1, 1).astype(np.int64) + np.arange(count)


class BlockPointer(interpreter.BlockPointerHandle):
    """A block pointer of many programs."""

    def materialize_pointers(self, boundary_check: Collection[int]) -> tuple[Handle, np.ndarray]:
        """The addresses of the block's elements, and a mask of those in bounds along checked
        dimensions."""
        runs = [_run(o, n) for o, n in zip(self.offsets, self.block_shape, strict=True)]
        return addresses(self.base, runs, self.strides, self.shape, boundary_check)


class Descriptor(interpreter.TensorDescHandle):
    """A tensor descriptor. rows: whether offsets name each row of a block (gather, scatter)."""

    rows = False

    def of_rows(self, rows: Handle) -> Descriptor:
        """The same descriptor for a block of these rows."""
        block = [rows.data.shape[-1], self.block_shape[-1]]
        made = Descriptor(self.base, self.shape, self.strides, block, self.padding)
        made.rows = True
        return made

    def validate(self) -> None:
        """Asserts the alignment and the strides that a device requires."""
        size = self.base.dtype.element_ty.primitive_bitwidth // 8
        assert not (self.base.data % ALIGNED).any(), "base must be 16-byte aligned"
        assert len(self.strides) == len(self.block_shape) == self.ndim >= 1, "ranks differ"
        for stride in self.strides[:-1]:
            assert not (stride.data * size % ALIGNED).any(), "stride must be 16-byte aligned"
        assert (self.strides[-1].data == 1).all(), "last dim must be contiguous"

    def materialize_pointers(self, offsets: Sequence[Handle]) -> tuple[Handle, np.ndarray]:
        """The addresses of a block at some offsets, and a mask of those in bounds."""
        size = self.base.dtype.element_ty.primitive_bitwidth // 8
        aligned = not (offsets[-1].data * size % ALIGNED).any()
        assert aligned, "block offset start must be 16-byte aligned"
        runs = [_run(o, n) for o, n in zip(offsets, self.block_shape, strict=True)]
        if self.rows:
            runs[0] = offsets[0].data.astype(np.int64)
        return addresses(self.base, runs, self.strides, self.shape, range(self.ndim))
