"""Boxes of tensors, as the DMA engine (TMA) moves them: what `kernel/signals.py`'s instructions do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from backends.cutedsl.testing.machine import HERE
from backends.cutedsl.testing.memory import SMEM, Pointer, Swizzle
from backends.gpu.source.launches import Map
from ir.reference.rounding import round_to

_BITS = {0: 0, 32: 1, 64: 2, 128: 3}  # of a swizzle of so many bytes


class TensorMap:
    """A global tensor as the DMA engine is told of it."""

    def __init__(self, pointer: Pointer, given: Map):
        self.pointer, self.given = pointer, given
        self.swizzle = Swizzle(_BITS[given.swizzle], 4, 3)

    def elements(self, shared: Pointer, at: list[Any]) -> Iterator[tuple[Pointer, Pointer | None]]:
        """Each element of a box in shared memory, with its own in the tensor where it has one."""
        given, begin = self.given, [int(x) for x in at][::-1]
        first = Pointer(shared.memory, shared.offset, self.pointer.dtype, SMEM, self.swizzle)
        for n, place in enumerate(np.ndindex(given.box)):
            where = [b + p * s for b, p, s in zip(begin, place, given.steps, strict=True)]
            inside = all(0 <= w < s for w, s in zip(where, given.sizes, strict=True))
            flat = int(np.ravel_multi_index(where, given.sizes)) if inside else 0
            yield first + n, self.pointer + flat if inside else None

    def loaded(self, there: Pointer) -> Any:
        """An element as the engine copies it."""
        value = there.load()
        if self.given.dtype != "tf32":
            return value
        return there.dtype(float(round_to(np.float32(value), "tf32")))


def load_box(to: Pointer, tensor_map: TensorMap, at: Any, signal: Pointer, blocks: int = 1) -> None:
    """A box into shared memory, for one block or for all of a cluster; its bytes arrive at a signal."""
    cluster = HERE.block.cluster
    if blocks not in (1, len(cluster)):
        raise ValueError(f"a box for {blocks} of {len(cluster)} blocks of a cluster")
    for block in cluster if blocks > 1 else (HERE.block,):
        moved = 0
        own = Pointer(block.memory, to.offset, to.dtype, SMEM, to.swizzle)
        for here, there in tensor_map.elements(own, at):
            here.store(tensor_map.loaded(there) if there is not None else here.dtype(0))
            moved += here.size
        block.signals[signal.address()].received(moved)


def store_box(tensor_map: TensorMap, source: Pointer, at: Any) -> None:
    """Shared memory to a box."""
    for here, there in tensor_map.elements(source, at):
        if there is not None:
            there.store(here.load())
