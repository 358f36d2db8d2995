"""System calls that Python has no function for."""

from __future__ import annotations

import ctypes
import os

LIBC = ctypes.CDLL(None, use_errno=True)
_SET_NO_NEW_PRIVILEGES = 38
_MOST_FILES = 1 << 16


def call(result: int) -> int:
    """The result of a system call; OSError where it failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def no_new_privileges() -> None:
    """Lets this process and its children gain no privileges, which filters of calls require."""
    call(LIBC.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0))


def keep_files(*kept: int) -> None:
    """Closes all files of this process but the three streams and those."""
    last = 2
    for file in sorted(kept):
        os.closerange(last + 1, file)
        last = file
    os.closerange(last + 1, _MOST_FILES)
