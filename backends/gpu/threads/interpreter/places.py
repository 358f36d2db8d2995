"""Global memory: places of tensors as closures; loads and stores with their vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from backends.backend import BackendError
from backends.gpu import tile as of
from backends.gpu.threads.interpreter import faults
from backends.gpu.threads.interpreter.counts import IDLE, MEASURED, Traffic, sectors
from backends.gpu.threads.interpreter.expressions import Code, Compiler
from backends.gpu.threads.interpreter.registers import Held
from backends.gpu.threads.interpreter.state import Block, spread
from backends.gpu.threads.interpreter.values import converted, held_as, joining, unknown
from backends.gpu.threads.thread import Vector
from ir.spec import DTYPES, FLOATS, Expr

# Indices, and where they are accessed (None: everywhere)
Found = tuple[np.ndarray, "np.ndarray | None"]


@dataclass(slots=True)
class Tensor:
    """A tensor in global memory, flat, in the numpy type of its dtype."""

    name: str
    dtype: str
    data: np.ndarray
    stored: bool = field(default=False)
    handed: Any = None  # a `Handed`, where it tracks which block accesses each element


@dataclass(frozen=True, slots=True)
class Accessor:
    """A place of a tensor at the registers of some axes."""

    tensor: Tensor
    index: Code
    mask: Code
    shape: tuple[int, ...]  # (threads, registers of each axis)
    block: Block
    vector: tuple[int, int] | None  # (dimension, elements) of a vector access
    there: np.ndarray | None  # where registers are within their axes; None: everywhere

    def find(self, only: np.ndarray | None = None) -> Found:
        """The elements that the active threads access. Raises ThreadFault where one is out of
        bounds.

        only: the threads that access, where others hold copies.
        """
        indices = spread(self.index.run(), self.shape)
        mask: Any = None if self.mask.known is not None and self.mask.known else self.mask.run()
        for threads in (self.block.active, only):
            if threads is not None:
                own = threads.reshape(-1, *[1] * (len(self.shape) - 1))
                mask = own if mask is None else mask & own
        if self.there is not None:
            mask = self.there if mask is None else mask & self.there
        if mask is not None:
            mask = spread(mask, self.shape)
        self._require_inside(indices, mask)
        if self.vector is not None:
            self._require_vectors(indices, mask)
        return indices, mask

    def take(self, found: Found, other: Code) -> Any:
        """The elements, `other` where the mask does not hold, and a poison value beyond the end of an axis."""
        indices, mask = found
        if self.tensor.handed is not None:
            at = indices if mask is None else indices[mask]
            self.tensor.handed.read(self.block, self.tensor, at.reshape(-1))
        if mask is None:
            return self.tensor.data[indices]
        data = self.tensor.data[np.where(mask, indices, 0)]
        data = np.where(mask, data, other.run())
        return (
            data if self.there is None else np.where(self.there, data, unknown(self.tensor.dtype))
        )

    def traffic(self, found: Found, row: Traffic) -> None:
        """Counts the sectors of an access."""
        row.executions += 1
        if row.measured >= MEASURED:
            return
        indices, mask = found
        bytes_of = DTYPES[self.tensor.dtype]
        addresses = indices.astype(np.int64) * bytes_of
        if mask is not None:
            addresses = np.where(mask, addresses, IDLE)
        width = 1
        if self.vector is not None:
            dimension, width = self.vector
            addresses = np.moveaxis(addresses, dimension, -1)[..., ::width]
        warps = addresses.reshape(self.shape[0] // self.block.warp, self.block.warp, -1)
        row.add(sectors(np.swapaxes(warps, 1, 2).reshape(-1, self.block.warp), width * bytes_of))

    def _require_inside(self, indices: np.ndarray, mask: np.ndarray | None) -> None:
        end = self.tensor.data.size
        if not indices.size or indices.min() >= 0 and indices.max() < end:
            return
        wrong = (indices < 0) | (indices >= end)
        if mask is not None:
            wrong &= mask
        if wrong.any():
            thread = np.argwhere(wrong)[0][0]
            raise self.block.fault(
                faults.OUT_OF_BOUNDS,
                f"thread {thread} accesses element {indices[wrong][0]} of `{self.tensor.name}`, "
                f"which has {end}",
                "mask the positions that are out of bounds",
                [thread],
            )

    def _require_vectors(self, indices: np.ndarray, mask: np.ndarray | None) -> None:
        assert self.vector is not None, "asked before"
        dimension, count = self.vector
        runs = np.moveaxis(indices, dimension, -1).reshape(-1, count)
        apart, first = runs != runs[:, :1] + np.arange(count), runs[:, 0] % count
        masks = None if mask is None else np.moveaxis(mask, dimension, -1).reshape(-1, count)
        if not apart.any() and not first.any():
            if masks is None or (masks == masks[:, :1]).all():
                return
        wrong = apart.any(axis=1) | (first != 0)
        what = f"{count} elements that are not consecutive, or not aligned"
        if masks is not None:
            wrong &= masks[:, 0]
            torn = (masks != masks[:, :1]).any(axis=1)
            if torn.any():
                wrong, what = torn, f"{count} elements of which the mask holds for some"
        if wrong.any():
            run = int(np.argmax(wrong))
            thread = run // (runs.shape[0] // self.shape[0])
            raise self.block.fault(
                faults.VECTOR,
                f"thread {thread} moves {what} of `{self.tensor.name}` at once: {runs[run]}",
                "let `aligned` name a constant that tells when they are, or move single elements",
                [thread],
            )


class Places:
    """Makes accessors of one launch."""

    def __init__(self, compiler: Compiler, tensors: dict[str, Tensor]):
        self.compiler = compiler
        self.tensors = tensors

    def tensor(self, pointer: Expr) -> Tensor:
        """The tensor of a pointer. Raises BackendError where the launch does not have it."""
        name = pointer.stem  # type: ignore[attr-defined]
        if name not in self.tensors or name not in self.compiler.launch.tensors:
            raise BackendError("emit", f"`{name}` is no tensor of {self.compiler.launch.name}")
        return self.tensors[name]

    def accessor(
        self, place: of.Place, axes: Sequence[Held], vector: Vector | None = None
    ) -> Accessor:
        """A place at the registers of some axes."""
        index = Code.constant(0)
        for term in place.terms:
            index = self.compiler.sum(index, self.compiler.of(term, axes))
        mask = self.compiler.every(place.mask, axes)
        threads = self.compiler.launch.threads
        shape = (threads, *(a.count for a in axes))
        return Accessor(
            self.tensor(place.tensor),
            index,
            mask,
            shape,
            self.compiler.block,
            self._vector(vector, axes),
            overshooting(axes, shape),
        )

    def loaded(self, e: of.Entry | of.Ranked, axes: Sequence[Held]) -> Code:
        """The value of an expression that loads: the elements at a place, or a rank in a table."""
        if isinstance(e, of.Ranked):
            return self._rank(e, axes)
        found = self.accessor(e.place, axes)  # type: ignore[arg-type]
        dtype = found.tensor.dtype
        other = Code.constant(0) if e.other is None else self.compiler.of(e.other, axes)
        other = self.compiler.cast(other, dtype)
        if axes:
            return Code(lambda: found.take(found.find(), other), dtype)
        return Code(lambda: found.block.alike(found.take(found.find(), other)), dtype)

    def _rank(self, e: of.Ranked, axes: Sequence[Held]) -> Code:
        tensor, block = self.tensor(e.table), self.compiler.block
        keys, count = self.compiler.of(e.keys, axes), self.compiler.of(e.count, ())

        def run() -> Any:
            end = int(block.alike(count.run()))
            if not 0 <= end <= tensor.data.size:
                what = (
                    f"{end} entries of `{tensor.name}`, which has {tensor.data.size}, are searched"
                )
                raise block.fault(faults.OUT_OF_BOUNDS, what, "search no more than there are")
            return np.searchsorted(tensor.data[:end], keys.run()).astype(np.int32)

        return Code(run, "i32")

    def _vector(self, vector: Vector | None, axes: Sequence[Held]) -> tuple[int, int] | None:
        """The dimension and length of a vector, where its alignment condition holds."""
        if vector is None or vector.count == 1:
            return None
        if vector.aligned is not None and not self.compiler.constants[vector.aligned]:
            return None
        for n, axis in enumerate(axes):
            if axis.index == vector.axis:
                if axis.count % vector.count:
                    break
                return n + 1, vector.count
        raise self.compiler.block.fault(
            faults.VECTOR,
            f"`{vector.axis}` has no runs of {vector.count} registers",
            "let the count divide the registers along an axis",
        )


def overshooting(axes: Sequence[Held], shape: tuple[int, ...]) -> np.ndarray | None:
    """Where registers have an element: the last ones may be beyond their axis. None: everywhere."""
    if all(a.positions.max() < a.width for a in axes):
        return None
    there = np.ones(shape, np.bool_)
    for n, a in enumerate(axes):
        there &= (a.positions < a.width).reshape(
            shape[0], *[1] * n, a.count, *[1] * (len(axes) - n - 1)
        )
    return there


def store(found: Accessor, value: Code, copies: np.ndarray | None, reduction: str) -> Found:
    """Stores a value to a place, or combines it atomically with what is there."""
    indices, mask = found.find(copies)
    tensor, block = found.tensor, found.block
    tensor.stored = True
    values = spread(converted(value.run(), value.dtype, tensor.dtype), found.shape)
    at = indices if mask is None else indices[mask]
    values = values if mask is None else values[mask]
    if tensor.handed is not None:
        tensor.handed.write(block, tensor, at.reshape(-1))
    if reduction:
        _join(tensor, at, values, reduction)
        return indices, mask
    tensor.data[at] = values
    lost = tensor.data[at] != values
    lost &= ~((values != values) & (tensor.data[at] != tensor.data[at])) if lost.any() else lost
    if lost.any():
        threads = np.broadcast_to(
            np.arange(found.shape[0]).reshape(-1, *[1] * (len(found.shape) - 1)), found.shape
        )
        thread = (threads if mask is None else threads[mask])[lost].reshape(-1)[0]
        raise block.fault(
            faults.WRITE_AFTER_WRITE,
            f"thread {thread} and another store different values to element {at[lost][0]} of "
            f"`{tensor.name}`",
            "let one thread store each element, or join them atomically",
            [thread],
        )
    return indices, mask


def _join(tensor: Tensor, at: np.ndarray, values: np.ndarray, reduction: str) -> None:
    data = tensor.data
    joining(reduction, True).at(data, at, values)
    if tensor.dtype in FLOATS and tensor.dtype != "f32" or held_as(tensor.dtype) is np.int32:
        wide = "f32" if tensor.dtype in FLOATS else "i32"
        data[at] = converted(data[at], wide, tensor.dtype)
