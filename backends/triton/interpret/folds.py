"""`tl.reduce` and `tl.associative_scan` on arrays: whole slices at a time, rounded as they go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl

from backends.triton.interpret.repairs import Handle, handle, held_as

Arrays = tuple[np.ndarray, ...]


def reduce(
    input: Any, axis: Any, combine_fn: Any, keep_dims: bool = False, **rest: Any
) -> Any:
    """Folds a tensor, or a tuple of them together, along an axis; None: along all."""
    tensors = input if isinstance(input, tuple) else (input,)
    arrays = tuple(t.handle.data for t in tensors)
    rank = arrays[0].ndim
    if axis is None:
        arrays = tuple(a.reshape(-1) for a in arrays)
    at = _number(axis) % arrays[0].ndim if axis is not None else 0
    dtypes = [t.dtype for t in tensors]
    found = _known(arrays, at, combine_fn) or _folded(arrays, dtypes, at, combine_fn)
    if keep_dims:
        found = tuple(
            f.reshape((1,) * rank) if axis is None else np.expand_dims(f, at) for f in found
        )
    made = tuple(_tensor(f, dtype) for f, dtype in zip(found, dtypes, strict=True))
    return made if isinstance(input, tuple) else made[0]


def associative_scan(
    input: Any, axis: Any, combine_fn: Any, reverse: bool = False, **rest: Any
) -> Any:
    """The running fold along an axis, in order; from the end where `reverse`."""
    tensors = input if isinstance(input, tuple) else (input,)
    at = _number(axis) % tensors[0].handle.data.ndim
    dtypes = [t.dtype for t in tensors]
    arrays = tuple(np.moveaxis(t.handle.data, at, 0) for t in tensors)
    if reverse:
        arrays = tuple(a[::-1] for a in arrays)
    made = [tuple(a[0] for a in arrays)]
    for n in range(1, len(arrays[0])):
        made.append(_combined(made[-1], tuple(a[n] for a in arrays), dtypes, combine_fn))
    found = [np.stack(parts) for parts in zip(*made, strict=True)]
    if reverse:
        found = [f[::-1] for f in found]
    results = tuple(
        _tensor(np.moveaxis(f, 0, at), dtype) for f, dtype in zip(found, dtypes, strict=True)
    )
    return results if isinstance(input, tuple) else results[0]


def _known(arrays: Arrays, axis: int, combine: Any) -> Arrays | None:
    """The fold where numpy has it for the whole axis; None where it does not."""
    standard, first = tl.standard, arrays[0]
    if combine is standard._sum_combine:
        wide = np.float32 if first.dtype == np.float16 else first.dtype
        return (np.sum(first, axis=axis, dtype=wide),)
    if combine is standard._elementwise_max:
        return (np.fmax.reduce(first, axis=axis),)
    if combine is standard._elementwise_min:
        return (np.fmin.reduce(first, axis=axis),)
    return None


def _folded(arrays: Arrays, dtypes: list[tl.dtype], axis: int, combine: Any) -> Arrays:
    """Any fold: neighbours first, then pairs of them, as the lanes of a warp do."""
    slices = [
        tuple(parts) for parts in zip(*(np.moveaxis(a, axis, 0) for a in arrays), strict=True)
    ]
    while len(slices) > 1:
        halves = [
            _combined(a, b, dtypes, combine)
            for a, b in zip(slices[::2], slices[1::2], strict=False)
        ]
        slices = halves + slices[len(halves) * 2 :]
    return slices[0]


def _combined(a: Arrays, b: Arrays, dtypes: list[tl.dtype], combine: Callable) -> Arrays:
    """The combination of slices, by the kernel's own function."""
    given = [_tensor(x, dtype) for x, dtype in zip((*a, *b), (*dtypes, *dtypes), strict=True)]
    got = combine(*given)
    parts = got if isinstance(got, (tuple, list, tl.tuple)) else (got,)
    shape = np.shape(a[0])
    return tuple(
        p.handle.data.astype(held_as(dtype)).reshape(shape)
        for p, dtype in zip(parts, dtypes, strict=True)
    )


def _tensor(data: np.ndarray, dtype: tl.dtype) -> tl.tensor:
    data = np.asarray(data)
    if not data.shape:
        return tl.tensor(Handle(_held(data.reshape(1), dtype), dtype), dtype)
    return tl.tensor(Handle(_held(data, dtype), dtype), tl.block_type(dtype, list(data.shape)))


def _held(data: np.ndarray, dtype: tl.dtype) -> np.ndarray:
    return data if data.dtype == np.bool_ and dtype == tl.int1 else handle(data, dtype).data


def _number(axis: Any) -> int:
    return axis.value if isinstance(axis, tl.constexpr) else int(axis)
