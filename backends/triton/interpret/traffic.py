"""Race detection: records which programs of a launch read and write which elements.

Programs that run together give the same results as one after another, in any order, if none
accesses what another writes. Each access is checked for that.
"""

from __future__ import annotations

import numpy as np

NOBODY, SEVERAL = -1, -2


class Conflict(Exception):
    """A program accesses, or may access, what another one writes."""


class AccessLog:
    """The accesses of one launch's programs to each writable tensor.

    programs: the numbers of those that run now, in the order of the first axis of accesses.
    """

    def __init__(self) -> None:
        self.programs = np.zeros(1, np.int32)
        self._known: dict[int, tuple[int, np.ndarray, np.ndarray]] = {}

    def read(self, tensor: int, size: int, bytes_: int, offsets: np.ndarray, mask: np.ndarray):
        """Records reads of elements of `size` bytes at byte offsets of a tensor of `bytes_` bytes.
        Raises Conflict on a race."""
        _, writers, readers = self._of(tensor, size, bytes_)
        at, by = self._chosen(offsets, mask, size)
        writer = writers[at]
        if ((writer != NOBODY) & (writer != by)).any():
            raise Conflict
        before = readers[at]
        readers[at] = np.where((before == NOBODY) | (before == by), by, SEVERAL)
        # If several programs read an element in this access, only the last assignment remains.
        unlike = readers[at] != by
        readers[at[unlike]] = SEVERAL

    def write(self, tensor: int, size: int, bytes_: int, offsets: np.ndarray, mask: np.ndarray):
        """Records writes. Raises Conflict on a race."""
        _, writers, readers = self._of(tensor, size, bytes_)
        at, by = self._chosen(offsets, mask, size)
        for before in (writers[at], readers[at]):
            if ((before != NOBODY) & (before != by)).any():
                raise Conflict
        writers[at] = by
        # Either two programs wrote one element in this access, of which the last assignment
        # remains, or the access has no program axis, i.e. all programs made it.
        if (writers[at] != by).any() or (by == SEVERAL).any():
            raise Conflict

    def _of(self, tensor: int, size: int, bytes_: int) -> tuple[int, np.ndarray, np.ndarray]:
        if tensor not in self._known:
            nobody = np.full(bytes_ // size, NOBODY, np.int32)
            self._known[tensor] = size, nobody, nobody.copy()
        if self._known[tensor][0] != size:
            raise Conflict
        return self._known[tensor]

    def _chosen(
        self, offsets: np.ndarray, mask: np.ndarray, size: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """The elements that are accessed, and the program that accesses each."""
        count = len(self.programs)
        by = self.programs if len(offsets) == count else np.array([SEVERAL], np.int32)
        by = np.broadcast_to(by.reshape(-1, *(1,) * (offsets.ndim - 1)), offsets.shape)
        chosen = np.broadcast_to(mask, offsets.shape)
        at = offsets[chosen]
        if (at % size).any():
            raise Conflict
        return at // size, by[chosen]
