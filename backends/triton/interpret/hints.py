"""Checks a kernel's compiler hints against the actual values.

The compiler trusts hints when it widens loads or drops masks. Triton's interpreter ignores them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import triton.language as tl

from backends.triton.interpret.semantic import whole


def multiple_of(x: Any, values: Any, **_: Any) -> Any:
    """Raises AssertionError where the first of a run of consecutive elements is not such a multiple."""
    for axis, value in _said(x, values):
        data = _numbers(x)
        first = np.ones(data.shape, bool)
        if x.type.is_block():
            after = (slice(None),) * (1 + axis)
            first[(*after, slice(1, None))] = np.diff(data, axis=1 + axis) != _step(x)
        if (data[first] % value).any():
            raise AssertionError(f"`multiple_of` says {value}, which is not so")
    return x


def max_contiguous(x: Any, values: Any, **_: Any) -> Any:
    """Raises AssertionError where so many elements are not consecutive."""
    return _runs(x, values, _step, "max_contiguous")


def max_constancy(x: Any, values: Any, **_: Any) -> Any:
    """Raises AssertionError where so many elements are not equal."""
    return _runs(x, values, lambda _: 0, "max_constancy")


HINTS = {f.__name__: f for f in (multiple_of, max_contiguous, max_constancy)}


def _runs(x: Any, values: Any, step: Callable[[tl.tensor], int], name: str) -> Any:
    for axis, value in _said(x, values):
        steps = np.diff(_numbers(x), axis=1 + axis)
        inside = (np.arange(steps.shape[1 + axis]) + 1) % value != 0
        if (steps.compress(inside, 1 + axis) != step(x)).any():
            raise AssertionError(f"`{name}` says {value}, which is not so")
    return x


def _said(x: Any, values: Any) -> Iterator[tuple[int, int]]:
    """The axes that have a hint, with its number. A loop index may be a Python number."""
    if not isinstance(x, tl.tensor):
        return
    each: Sequence[Any] = values if isinstance(values, list | tuple | tl.tuple) else [values]
    numbers = [int(v.value if isinstance(v, tl.constexpr) else v) for v in each]
    if len(numbers) != max(1, len(x.shape)):
        raise ValueError(f"it says {len(numbers)} numbers of {len(x.shape)} axes")
    yield from ((axis, number) for axis, number in enumerate(numbers) if number > 1)


def _numbers(x: tl.tensor) -> np.ndarray:
    """The elements of integers or pointers as 64-bit numbers, with programs along the first axis."""
    return np.asarray(whole(x).handle.data).astype(np.int64)


def _step(x: tl.tensor) -> int:
    """The distance between consecutive elements."""
    scalar = x.type.scalar
    return scalar.element_ty.primitive_bitwidth // 8 if scalar.is_ptr() else 1
