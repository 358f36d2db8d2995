"""Expected results, which a process that runs foreign code must not see.

A forked process has a copy of its parent's memory. `wipe` zeroes the expected results in that copy
before the foreign code is loaded.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol
from weakref import WeakValueDictionary

import numpy as np

from ir.reference.formulas import arrays_of

LARGE = 1 << 20  # bytes from which pages are dropped: writing zeros would first copy the pages
_Arrays = Mapping[str, np.ndarray]


class Known(Protocol):
    """The reference results of a kernel."""

    @property
    def inputs(self) -> _Arrays: ...
    @property
    def exact(self) -> _Arrays: ...
    @property
    def storage(self) -> _Arrays: ...
    @property
    def noisy(self) -> Sequence[_Arrays]: ...
    @property
    def derived(self) -> Iterator[np.ndarray]: ...


_known: WeakValueDictionary[int, Known] = WeakValueDictionary()


def note(known: Known) -> None:
    """Registers results, which `wipe` then zeroes."""
    _known[id(known)] = known


def wipe() -> None:
    """Zeroes all expected results in this process. Only for forked processes: the owner of the
    arrays sees the change. Memory shared with inputs is kept, because kernels read it."""
    all_known = list(_known.values())
    given = {id(_whole(a)) for k in all_known for a in arrays_of(k.inputs).values()}
    for known in all_known:
        for array in _results(known):
            whole = _whole(array)
            if id(whole) not in given and whole.flags.owndata:
                _zero(whole)


def _results(known: Known) -> Iterator[np.ndarray]:
    for group in (known.exact, known.storage, *known.noisy):
        yield from group.values()
    yield from known.derived


def _whole(array: np.ndarray) -> np.ndarray:
    """The array that owns the memory of a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _zero(array: np.ndarray) -> None:
    """Zeroes an array's memory, which only this process has."""
    first, count = array.ctypes.data, array.nbytes
    start = -(-first // mmap.PAGESIZE) * mmap.PAGESIZE
    pages = (first + count - start) // mmap.PAGESIZE * mmap.PAGESIZE
    if count < LARGE or not _dropped(start, pages):
        ctypes.memset(first, 0, count)
        return
    ctypes.memset(first, 0, start - first)
    ctypes.memset(start + pages, 0, first + count - start - pages)


def _dropped(start: int, count: int) -> bool:
    """Drops pages; the next read returns zeros. Returns whether it succeeded."""
    place, size = ctypes.c_void_p(start), ctypes.c_size_t(count)
    return ctypes.CDLL(None).madvise(place, size, mmap.MADV_DONTNEED) == 0
