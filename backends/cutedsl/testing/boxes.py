"""Boxes of tensors, as TMA copies them: emulates the instructions of `kernel/signals.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from backends.cutedsl.testing.machine import HERE
from backends.cutedsl.testing.memory import SMEM, Pointer, Swizzle
from backends.gpu.source.launches import Map
from ir.reference.rounding import round_to

_BITS = {0: 0, 32: 1, 64: 2, 128: 3}  # swizzle bits by the swizzle's bytes


class TensorMap:
    """A global tensor, as a tensor map describes it."""

    def __init__(self, pointer: Pointer, given: Map):
        self.pointer, self.given = pointer, given
        self.swizzle = Swizzle(_BITS[given.swizzle], 4, 3)

    def elements(self, shared: Pointer, at: list[Any]) -> Iterator[tuple[Pointer, Pointer | None]]:
        """Each element of a box in shared memory, with its element in the tensor (None if it is out of bounds)."""
        given, begin = self.given, [int(x) for x in at][::-1]
        first = Pointer(shared.memory, shared.offset, self.pointer.dtype, SMEM, self.swizzle)
        for n, place in enumerate(np.ndindex(given.box)):
            where = [b + p * s for b, p, s in zip(begin, place, given.steps, strict=True)]
            inside = all(0 <= w < s for w, s in zip(where, given.sizes, strict=True))
            flat = int(np.ravel_multi_index(where, given.sizes)) if inside else 0
            yield first + n, self.pointer + flat if inside else None

    def loaded(self, there: Pointer) -> Any:
        """An element as TMA copies it."""
        value = there.load()
        if self.given.dtype != "tf32":
            return value
        return there.dtype(float(round_to(np.float32(value), "tf32")))


def load_box(to: Pointer, tensor_map: TensorMap, at: Any, signal: Pointer, blocks: int = 1) -> None:
    """Copies a box into shared memory of one block, or of all blocks of a cluster; its bytes arrive at a signal."""
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
    """Copies shared memory to a box of a tensor."""
    for here, there in tensor_map.elements(source, at):
        if there is not None:
            there.store(here.load())
