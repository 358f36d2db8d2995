"""Triton's tensor semantics on blocks that are not broadcast.

An array has length 1 along an axis where all elements are equal: comparing a row of masks with a
column keeps the row a row. Operations that count or move elements broadcast it first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.language.semantic import TritonSemantic
from triton.runtime import interpreter


def whole(tensor: Any) -> Any:
    """A tensor broadcast to all of its elements; its program axis keeps its length."""
    if not isinstance(tensor, tl.tensor) or not tensor.type.is_block():
        return tensor
    data = tensor.handle.data
    shape = (len(data), *tensor.type.shape)
    if data.shape == shape:
        return tensor
    held = np.ascontiguousarray(np.broadcast_to(data, shape))
    return tl.tensor(interpreter.TensorHandle(held, tensor.handle.dtype), tensor.type)


def _of_whole(name: str) -> Callable:
    plain = getattr(TritonSemantic, name)

    def call(self: TritonSemantic, *args: Any, **options: Any) -> Any:
        return plain(self, *map(whole, args), **options)

    return call


class Semantic(TritonSemantic):
    """TritonSemantic, with operands broadcast where an operation needs all elements."""

    reshape = _of_whole("reshape")
    cat = _of_whole("cat")
    split = _of_whole("split")
    dot = _of_whole("dot")
    gather = _of_whole("gather")
    histogram = _of_whole("histogram")
    atomic_cas = _of_whole("atomic_cas")

    def atom_red_typechecking_impl(self, *args: Any) -> Any:
        return tuple(map(whole, super().atom_red_typechecking_impl(*args)))

    def join(self, a: tl.tensor, b: tl.tensor) -> tl.tensor:
        a, b = map(whole, self.broadcast_impl_value(a, b))
        return super().join(a, b)
