"""What a kernel tells the compiler of its numbers, held to what they are.

A compiler believes it, and loads wider or leaves out masks. Triton's interpreter does not look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import triton.language as tl

from backends.triton.interpret.semantic import whole


def multiple_of(x: Any, values: Any, **_: Any) -> Any:
    """AssertionError where the first of elements that follow each other is no such multiple."""
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
    """AssertionError where so many elements do not follow each other."""
    return _runs(x, values, _step, "max_contiguous")


def max_constancy(x: Any, values: Any, **_: Any) -> Any:
    """AssertionError where so many elements are not alike."""
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
    """The axes of which something is said, with the number. An index of a loop may be Python's."""
    if not isinstance(x, tl.tensor):
        return
    each: Sequence[Any] = values if isinstance(values, list | tuple | tl.tuple) else [values]
    numbers = [int(v.value if isinstance(v, tl.constexpr) else v) for v in each]
    if len(numbers) != max(1, len(x.shape)):
        raise ValueError(f"it says {len(numbers)} numbers of {len(x.shape)} axes")
    yield from ((axis, number) for axis, number in enumerate(numbers) if number > 1)


def _numbers(x: tl.tensor) -> np.ndarray:
    """The elements of integers or pointers in 64 bits, those of each program along the first axis."""
    return np.asarray(whole(x).handle.data).astype(np.int64)


def _step(x: tl.tensor) -> int:
    """How far apart elements are that follow each other."""
    scalar = x.type.scalar
    return scalar.element_ty.primitive_bitwidth // 8 if scalar.is_ptr() else 1
