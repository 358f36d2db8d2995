"""System calls without a Python function."""

from __future__ import annotations

import ctypes
import os

LIBC = ctypes.CDLL(None, use_errno=True)
_SET_NO_NEW_PRIVILEGES = 38
_MOST_FILES = 1 << 16


def call(result: int) -> int:
    """The result of a system call. Raises OSError if it failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def no_new_privileges() -> None:
    """Prevents this process and its children from gaining privileges, as seccomp filters
    require."""
    call(LIBC.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0))


def keep_files(*kept: int) -> None:
    """Closes all files of this process except the three standard streams and `kept`."""
    last = 2
    for file in sorted(kept):
        os.closerange(last + 1, file)
        last = file
    os.closerange(last + 1, _MOST_FILES)
