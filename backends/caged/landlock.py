"""Landlock: permanently limits a process and its children in their use of files, sockets and
signals.

See https://docs.kernel.org/userspace-api/landlock.html. Each call of `restrict` removes rights; the
restrictions accumulate.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from backends.caged.linux import LIBC, call

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same numbers on every architecture

EXECUTE, WRITE_FILE, READ_FILE, READ_FOLDER = 1 << 0, 1 << 1, 1 << 2, 1 << 3
TRUNCATE, IOCTL_DEVICE = 1 << 14, 1 << 15
READS = EXECUTE | READ_FILE | READ_FOLDER
REFER = 1 << 13  # link and rename across folders; also refused by rulesets that do not name it
# the others are rights of folders
_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE
_RIGHTS = (  # rights that change files, with the lowest ABI that has them
    # remove and create, for all file types
    (1, WRITE_FILE | sum(1 << bit for bit in range(4, 13))),
    (2, REFER),
    (3, TRUNCATE),
    (5, IOCTL_DEVICE),
)
_TCP_ABI, TCP = 4, 0b11  # bind, connect
_SCOPE_ABI, SCOPES = 6, 0b11  # abstract sockets, and signals to processes outside


def version() -> int:
    """The ABI of this kernel. Raises OSError if it has none."""
    return call(LIBC.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1)))


def writes(abi: int) -> int:
    """All rights that change files, as far as the ABI has them."""
    return sum(rights for least, rights in _RIGHTS if abi >= least)


def network(abi: int) -> int:
    """The rights for TCP."""
    return TCP if abi >= _TCP_ABI else 0


def scopes(abi: int) -> int:
    """The scopes that are limited to processes inside."""
    return SCOPES if abi >= _SCOPE_ABI else 0


def restrict(files: int, tcp: int, inside: int, allowed: Iterable[tuple[Path, int]]) -> None:
    """Removes rights from this process.

    files, tcp, inside: rights that it loses. allowed: paths, with the rights that it keeps there
    and below. Missing paths are skipped.
    """
    fields = (files, tcp, inside)[: 3 if inside else 2 if tcp else 1]
    attributes = struct.pack(f"={len(fields)}Q", *fields)
    size = ctypes.c_size_t(len(attributes))
    rules = call(LIBC.syscall(_CREATE_RULESET, attributes, size, ctypes.c_uint32(0)))
    try:
        for place, rights in allowed:
            with suppress(FileNotFoundError, NotADirectoryError):
                _allow(rules, place, files & rights)
        call(LIBC.syscall(_RESTRICT_SELF, rules, ctypes.c_uint32(0)))
    finally:
        os.close(rules)


def _allow(rules: int, path: Path, rights: int) -> None:
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= _OF_FILES
        rule = struct.pack("=Qi", rights, place)
        call(LIBC.syscall(_ADD_RULE, rules, 1, rule, ctypes.c_uint32(0)))
    finally:
        os.close(place)
