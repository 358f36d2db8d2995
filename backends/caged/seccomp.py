"""Filters of system calls, in classic BPF.

See https://docs.kernel.org/userspace-api/seccomp_filter.html. A filter is permanent and also holds
for every process that this one starts.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from backends.caged.linux import LIBC, call

_SET_SECCOMP, _FILTER = 22, 2
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16  # offsets in `struct seccomp_data`
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
REFUSED, ABSENT = REFUSE | errno.EPERM, REFUSE | errno.ENOSYS
LEAST_OF_X32 = 0x40000000


@dataclass(frozen=True, slots=True)
class Architecture:
    """The kernel's id of an architecture, its column in tables of numbers, and the numbers of calls
    whose arguments matter."""

    audit: int
    column: int
    clone: int
    ioctl: int
    prlimit: int
    socket: int
    tgkill: int


ARCHITECTURES = {
    "x86_64": Architecture(0xC000003E, 0, clone=56, ioctl=16, prlimit=302, socket=41, tgkill=234),
    "aarch64": Architecture(
        0xC00000B7, 1, clone=220, ioctl=29, prlimit=261, socket=198, tgkill=131
    ),
}
_ONE_OF_PROCESS = 0x00010000  # flag of `clone` for a thread
# The calls of a process that loads a library, computes, and communicates on an existing socket. By
# name: the number on x86-64 and on aarch64.
_COMPUTES: Mapping[str, tuple[int, int]] = {
    "brk": (12, 214),
    "mmap": (9, 222),
    "munmap": (11, 215),
    "mremap": (25, 216),
    "mprotect": (10, 226),
    "madvise": (28, 233),
    "futex": (202, 98),
    "openat": (257, 56),
    "read": (0, 63),
    "pread64": (17, 67),
    "fstat": (5, 80),
    "newfstatat": (262, 79),
    "close": (3, 57),
    "lseek": (8, 62),
    "write": (1, 64),
    "writev": (20, 66),
    "recvfrom": (45, 207),
    "sendto": (44, 206),
    "rt_sigreturn": (15, 139),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "sigaltstack": (131, 132),
    "getpid": (39, 172),
    "gettid": (186, 178),
    "exit": (60, 93),
    "exit_group": (231, 94),
    "getrandom": (318, 278),
}

# Further calls that start threads and time them.
_IN_THREADS: Mapping[str, tuple[int, int]] = {
    "set_robust_list": (273, 99),
    "rseq": (334, 293),
    "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123),
    "clock_gettime": (228, 113),
}
# A filter cannot see its flags; it is reported as missing, so that `clone` is used.
_CLONE3 = (435, 435)


def here() -> Architecture:
    """This machine's architecture. Raises OSError if its numbers are unknown."""
    name = platform.machine()
    if name not in ARCHITECTURES:
        raise OSError(0, f"no numbers of system calls are known for {name}")
    return ARCHITECTURES[name]


def install(text: bytes) -> None:
    """Installs a filter for all further calls of this process. Raises OSError if the kernel does
    not permit it."""
    held = ctypes.create_string_buffer(text, len(text))
    program = struct.pack("@HP", len(text) // 8, ctypes.addressof(held))
    call(LIBC.prctl(_SET_SECCOMP, _FILTER, program, 0, 0))


def computing(machine: Architecture, process: int, threads: bool = False) -> bytes:
    """A filter that allows the calls of a computing process, and a signal to itself, as by `abort`.

    threads: whether it may start threads and read the clock.
    """
    own = where(machine.tgkill, 0, [step(EQUAL, process, 0, 1), _ALLOWED, _REFUSED])
    return b"".join([_for_all(machine, threads), *own, _REFUSED])


@cache
def _for_all(machine: Architecture, threads: bool) -> bytes:
    """The part that does not depend on the process."""
    refuse, allow = _REFUSED, _ALLOWED
    made = [step(LOAD, ARCHITECTURE), step(EQUAL, machine.audit, 1, 0), refuse, step(LOAD, NUMBER)]
    allowed = [*_COMPUTES.values(), *(_IN_THREADS.values() if threads else ())]
    for numbers in allowed:
        made += [step(EQUAL, numbers[machine.column], 0, 1), allow]
    if threads:
        made += [step(EQUAL, _CLONE3[machine.column], 0, 1), step(RETURN, ABSENT)]
        made += where(machine.clone, 0, [step(ANY_BIT, _ONE_OF_PROCESS, 0, 1), allow, refuse])
    return b"".join(made)


def where(number: int, argument: int, steps: Sequence[bytes]) -> list[bytes]:
    """Steps for one call, with the low half of an argument loaded. They must end with an answer."""
    load = step(LOAD, ARGUMENTS + 8 * argument)
    return [step(EQUAL, number, 0, len(steps) + 1), load, *steps]


def step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """One instruction. if_true, if_false: numbers of instructions to skip."""
    return struct.pack("=HBBI", code, if_true, if_false, value)


_REFUSED, _ALLOWED = step(RETURN, REFUSED), step(RETURN, ALLOW)
