"""Operations on many programs at once: the first axis of every array is the program.

That axis has length 1 where all programs have the same value. A scalar has no other axis, so `x +
1` is one numpy addition for all programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from backends.triton.interpret.pointers import BlockPointer, Descriptor

Handle: TypeAlias = interpreter.TensorHandle


class Split(Exception):
    """Programs diverge. keys: one per program; programs with equal keys continue together."""

    def __init__(self, keys: np.ndarray):
        super().__init__(f"{len(np.unique(keys))} ways")
        self.keys = keys


def same(data: np.ndarray) -> Any:
    """The value of a scalar that is equal in all programs. Raises Split where it differs."""
    flat = data.reshape(-1)
    if flat.size > 1 and not (flat == flat[0]).all():
        raise Split(flat)
    return flat[0].item()


def truth(tensor: tl.tensor) -> bool:
    """The value of a tensor as an `if` condition. A tensor of several elements counts as true."""
    several = tensor.type.is_block() and prod(tensor.type.shape) > 1
    return several or bool(same(tensor.handle.data))


def iterations(first: Any, last: Any, step: Any) -> Any:
    """The index of each iteration of a loop, as int64 per program. Raises Split where programs have
    different iteration counts."""
    low, high, by = (_whole(x) for x in (first, last, step))
    for n in range(max(0, same(-((low - high) // by)))):
        yield low + n * by


def _whole(given: Any) -> np.ndarray:
    if isinstance(given, tl.tensor):
        return given.handle.data.reshape(-1).astype(np.int64)
    return np.array([getattr(given, "value", given)], np.int64)


class Lockstep(interpreter.InterpreterBuilder):
    """Triton's interpreter on arrays of programs, with blocks held as in `Semantic`.

    widest: elements of the largest block that a program has had.
    """

    def __init__(self) -> None:
        super().__init__()
        self.places = np.zeros((1, 3), np.int32)
        self.widest = 1

    def set_programs(self, places: np.ndarray) -> None:
        """Sets the programs that run now. places: their program ids along the three axes of the
        grid."""
        self.places = places
        self.grid_idx = tuple(places[0].tolist())

    def create_get_program_id(self, axis: int) -> Handle:
        return Handle(np.ascontiguousarray(self.places[:, axis]), tl.int32)

    def create_make_range(self, kind: Any, start: int, stop: int) -> Handle:
        return Handle(np.arange(start, stop, dtype=np.int32)[None], tl.int32)

    def create_splat(self, kind: tl.block_type, arg: Handle) -> Handle:
        data = arg.data.reshape(-1, *(1 for _ in kind.shape))
        self.widest = max(self.widest, prod(kind.shape))
        data = data.astype(interpreter._get_np_dtype(arg.dtype), copy=False)
        return Handle(data, arg.dtype.scalar)

    def create_unsplat(self, arg: Handle) -> Handle:
        return Handle(arg.data.reshape(len(arg.data), -1)[:, 0], arg.dtype.scalar)

    def create_broadcast(self, arg: Handle, shape: Sequence[int]) -> Handle:
        self.widest = max(self.widest, prod(shape))
        return arg

    def create_expand_dims(self, arg: Handle, axis: int) -> Handle:
        return Handle(np.expand_dims(arg.data, axis + 1), arg.dtype.scalar)

    def create_reshape(self, arg: Handle, shape: Sequence[int], allow_reorder: bool) -> Handle:
        return Handle(arg.data.reshape(len(arg.data), *shape), arg.dtype.scalar)

    def create_trans(self, arg: Handle, perm: Sequence[int]) -> Handle:
        return Handle(np.transpose(arg.data, (0, *(p + 1 for p in perm))), arg.dtype.scalar)

    def create_cat(self, lhs: Handle, rhs: Handle) -> Handle:
        return Handle(np.concatenate(together(lhs.data, rhs.data), axis=1), lhs.dtype.scalar)

    def create_join(self, lhs: Handle, rhs: Handle) -> Handle:
        return Handle(np.stack(together(lhs.data, rhs.data), axis=-1), lhs.dtype.scalar)

    def create_gather(self, src: Handle, indices: Handle, axis: int) -> Handle:
        data, places = together(src.data, indices.data)
        return Handle(np.take_along_axis(data, places, axis=axis + 1), src.dtype.scalar)

    def create_histogram(self, data: Handle, bins: int, mask: Handle | None) -> Handle:
        values = data.data
        chosen = np.ones_like(values, bool) if mask is None else mask.data
        rows = zip(*together(values, chosen), strict=True)
        found = [np.bincount(v[c & (v >= 0) & (v < bins)], minlength=bins) for v, c in rows]
        return Handle(np.stack(found).astype(np.int32), tl.int32)

    def create_make_block_ptr(
        self, base: Handle, shape: Any, strides: Any, offsets: Any, block: Any, order: Any
    ) -> BlockPointer:
        return BlockPointer(base, shape, strides, list(offsets), block, order)

    def create_advance(self, ptr: BlockPointer, offsets: Sequence[Handle]) -> BlockPointer:
        pairs = zip(ptr.offsets, offsets, strict=True)
        moved = [Handle(a.data + b.data, a.dtype) for a, b in pairs]
        return BlockPointer(ptr.base, ptr.shape, ptr.strides, moved, ptr.block_shape, ptr.order)

    def create_make_tensor_descriptor(
        self, base: Handle, shape: Any, strides: Any, block: Any, signed: bool, padding: Any
    ) -> Descriptor:
        made = Descriptor(base, shape, strides, block, padding)
        made.validate()
        return made

    def create_descriptor_gather(
        self, desc: Descriptor, rows: Handle, column: Handle, kind: Any
    ) -> Handle:
        return self.create_descriptor_load(desc.of_rows(rows), [rows, column], None, None)

    def create_descriptor_scatter(
        self, desc: Descriptor, value: Handle, rows: Handle, column: Handle
    ) -> None:
        self.create_descriptor_store(desc.of_rows(rows), value, [rows, column])


def together(*arrays: np.ndarray) -> list[np.ndarray]:
    """The arrays broadcast to the same number of programs."""
    count = max(map(len, arrays))
    return [np.broadcast_to(a, (count, *a.shape[1:])) for a in arrays]
