"""`tl.reduce` and `tl.associative_scan` over arrays of programs: operates on whole slices, and
rounds after each operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl

from backends.triton.interpret.lockstep import together
from backends.triton.interpret.repairs import Handle, handle, held_as, is_narrow
from backends.triton.interpret.semantic import whole

ArrayTuple = tuple[np.ndarray, ...]


def reduce(input: Any, axis: Any, combine_fn: Any, keep_dims: bool = False, **rest: Any) -> Any:
    """Reduces a tensor, or a tuple of tensors together, along an axis; `None` reduces all axes."""
    tensors = input if isinstance(input, tuple) else (input,)
    arrays = tuple(together(*(whole(t).handle.data for t in tensors)))
    rank = arrays[0].ndim - 1
    if axis is None:
        arrays = tuple(a.reshape(len(a), -1) for a in arrays)
    at = 1 if axis is None else 1 + _number(axis) % rank
    dtypes = [t.dtype for t in tensors]
    found = _known(arrays, at, combine_fn) or _reduced(arrays, dtypes, at, combine_fn)
    if keep_dims:
        found = tuple(
            f.reshape(-1, *(1,) * rank) if axis is None else np.expand_dims(f, at) for f in found
        )
    made = tuple(_tensor(f, dtype) for f, dtype in zip(found, dtypes, strict=True))
    return made if isinstance(input, tuple) else made[0]


def associative_scan(
    input: Any, axis: Any, combine_fn: Any, reverse: bool = False, **rest: Any
) -> Any:
    """The scan along an axis; from the end if `reverse`."""
    tensors = input if isinstance(input, tuple) else (input,)
    arrays = tuple(together(*(whole(t).handle.data for t in tensors)))
    at = 1 + _number(axis) % (arrays[0].ndim - 1)
    if reverse:
        arrays = tuple(np.flip(a, at) for a in arrays)
    dtypes = [t.dtype for t in tensors]
    found = _running(arrays, dtypes, at, combine_fn) or _scanned(arrays, dtypes, at, combine_fn)
    if reverse:
        found = tuple(np.flip(f, at) for f in found)
    results = tuple(_tensor(f, dtype) for f, dtype in zip(found, dtypes, strict=True))
    return results if isinstance(input, tuple) else results[0]


def _known(arrays: ArrayTuple, axis: int, combine: Any) -> ArrayTuple | None:
    """The reduction by one numpy call; None where numpy has no such reduction."""
    standard, first = tl.standard, arrays[0]
    if combine is standard._sum_combine:
        wide = np.float32 if first.dtype == np.float16 else first.dtype
        return (np.sum(first, axis=axis, dtype=wide),)
    if combine is standard._elementwise_max:
        return (np.fmax.reduce(first, axis=axis),)
    if combine is standard._elementwise_min:
        return (np.fmin.reduce(first, axis=axis),)
    return None


def _reduced(arrays: ArrayTuple, dtypes: list[tl.dtype], axis: int, combine: Any) -> ArrayTuple:
    """A general reduction: combines adjacent elements first, then pairs of results, as the threads of a warp do."""
    slices = tuple(np.moveaxis(a, axis, 1) for a in arrays)
    while (count := slices[0].shape[1]) > 1:
        paired = count // 2 * 2
        even = tuple(s[:, 0:paired:2] for s in slices)
        odd = tuple(s[:, 1:paired:2] for s in slices)
        made = _combined(even, odd, dtypes, combine)
        slices = tuple(
            np.concatenate([m, s[:, paired:]], axis=1) for m, s in zip(made, slices, strict=True)
        )
    return tuple(s[:, 0] for s in slices)


def _running(
    arrays: ArrayTuple, dtypes: list[tl.dtype], axis: int, combine: Any
) -> ArrayTuple | None:
    """The scan by one numpy call where that rounds as the dtype does; else None."""
    functions = {tl.standard._sum_combine: np.add, tl.standard._prod_combine: np.multiply}
    known = next((f for c, f in functions.items() if c is combine), None)
    if known is None or is_narrow(dtypes[0]):
        return None
    return (known.accumulate(arrays[0], axis=axis, dtype=arrays[0].dtype),)


def _scanned(arrays: ArrayTuple, dtypes: list[tl.dtype], axis: int, combine: Any) -> ArrayTuple:
    """A general scan, slice by slice."""
    arrays = tuple(np.moveaxis(a, axis, 1) for a in arrays)
    made = [tuple(a[:, 0] for a in arrays)]
    for n in range(1, arrays[0].shape[1]):
        made.append(_combined(made[-1], tuple(a[:, n] for a in arrays), dtypes, combine))
    return tuple(np.stack(parts, axis=axis) for parts in zip(*made, strict=True))


def _combined(
    a: ArrayTuple, b: ArrayTuple, dtypes: list[tl.dtype], combine: Callable
) -> ArrayTuple:
    """The kernel's own combine function applied to slices."""
    given = [_tensor(x, dtype) for x, dtype in zip((*a, *b), (*dtypes, *dtypes), strict=True)]
    got = combine(*given)
    parts = got if isinstance(got, (tuple, list, tl.tuple)) else (got,)
    return tuple(
        np.broadcast_to(p.handle.data.astype(held_as(dtype)), a[0].shape)
        for p, dtype in zip(parts, dtypes, strict=True)
    )


def _tensor(data: np.ndarray, dtype: tl.dtype) -> tl.tensor:
    kind = tl.block_type(dtype, list(data.shape[1:])) if data.ndim > 1 else dtype
    return tl.tensor(Handle(_held(data, dtype), dtype), kind)


def _held(data: np.ndarray, dtype: tl.dtype) -> np.ndarray:
    return data if data.dtype == np.bool_ and dtype == tl.int1 else handle(data, dtype).data


def _number(axis: Any) -> int:
    return axis.value if isinstance(axis, tl.constexpr) else int(axis)
