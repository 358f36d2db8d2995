"""Memory that two processes share: a System V segment, which limits on file sizes do not affect.

A segment is marked for removal as soon as it is created. It stays while a process has it attached,
and Linux permits others to attach it until then.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING

from backends.caged.linux import LIBC, call

if TYPE_CHECKING:
    import numpy as np

_PRIVATE, _REMOVE = 0, 0
_OWN = 0o600
ALIGNED = 64
WORD = 8  # bytes of a pointer or of a number
LIBC.shmat.restype = ctypes.c_void_p
LIBC.shmdt.argtypes = (ctypes.c_void_p,)
_FAILED = ctypes.c_void_p(-1).value


def attach(number: int) -> int:
    """The address of a segment in this process. Raises OSError if there is none."""
    address = LIBC.shmat(number, None, 0)
    if address in (None, _FAILED):
        call(-1)
    return address


class Segment:
    """A segment of this process, allocated from its start. It is removed when no array of it is
    left."""

    def __init__(self, size: int):
        """size: bytes of all allocations, including their alignment. Raises OSError if the memory
        is not available."""
        import numpy as np  # runners work without it

        self.number = call(LIBC.shmget(_PRIVATE, ctypes.c_size_t(max(size, 1)), _OWN))
        try:
            self.address = attach(self.number)
        finally:
            LIBC.shmctl(self.number, _REMOVE, None)
        held = (ctypes.c_ubyte * max(size, 1)).from_address(self.address)
        weakref.finalize(held, LIBC.shmdt, self.address)
        self._bytes = np.frombuffer(memoryview(held), np.uint8)
        self._used = 0

    def room(self, size: int) -> np.ndarray:
        """The next `size` bytes, zeroed."""
        start = -(-self._used // ALIGNED) * ALIGNED
        assert start + size <= len(self._bytes), "the segment was made for less"
        self._used = start + size
        return self._bytes[start : self._used]

    def words(self, values: Sequence[int]) -> np.ndarray:
        """The next words, with these values. A word has WORD bytes."""
        import numpy as np

        made = self.room(WORD * max(1, len(values))).view(np.uint64)
        made[: len(values)] = np.array(values, np.uint64)
        return made

    def offset(self, array: np.ndarray) -> int:
        """The offset of an array in this segment, in bytes."""
        return array.ctypes.data - self.address
