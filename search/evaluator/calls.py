"""System calls that a candidate's process may not make: a seccomp filter in classic BPF.

See https://docs.kernel.org/userspace-api/seccomp_filter.html. A filter stays for good, and for all that
the process starts. It refuses what reaches other processes' memory, the kernel's own programs, keys,
mounts, namespaces and settings of the machine; what compilers and drivers call stays allowed.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from search.evaluator.namespaces import LIBC, call

_SET_SECCOMP, _FILTER = 22, 2
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in `struct seccomp_data`
_NEW_NAMESPACES = 0x7E020000  # flags of `clone`
_TO_TERMINALS = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX: input for whoever has the terminal
_UNIX, _INTERNET, _INTERNET_6, _NETLINK = 1, 2, 10, 16
_OF_DRIVERS = (_UNIX, _INTERNET, _INTERNET_6, _NETLINK)  # sockets that a device's driver may have
_LEAST_OF_X32 = 0x40000000

# By name, the number on x86-64 and on aarch64; None: there is none.
_REFUSED: Mapping[str, tuple[int | None, int | None]] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "migrate_pages": (256, 238),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "setns": (308, 268),
    "unshare": (272, 97),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "uselib": (134, None),
    "personality": (135, 92),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
}
# As if the kernel had none, so that who asks takes another way; the flags of `clone3` cannot be seen.
_ABSENT: Mapping[str, tuple[int, int]] = {
    "clone3": (435, 435),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
}


@dataclass(frozen=True, slots=True)
class _Machine:
    """An architecture: its name for the kernel, its column in the tables, and calls whose arguments
    decide."""

    audit: int
    column: int
    clone: int
    ioctl: int
    prlimit: int
    socket: int


_MACHINES = {
    "x86_64": _Machine(0xC000003E, 0, clone=56, ioctl=16, prlimit=302, socket=41),
    "aarch64": _Machine(0xC00000B7, 1, clone=220, ioctl=29, prlimit=261, socket=198),
}


def refuse_calls(devices: tuple[str, ...]) -> str:
    """Installs the filter; how many calls it refuses. OSError where the kernel does not let it, or
    the architecture is not known.

    devices: with any, sockets that a driver may have are allowed, which reach nobody outside of the
    network namespace.
    """
    name = platform.machine()
    if name not in _MACHINES:
        raise OSError(0, f"no numbers of system calls are known for {name}")
    text = _program(_MACHINES[name], _OF_DRIVERS if devices else ())
    held = ctypes.create_string_buffer(text, len(text))
    program = struct.pack("@HP", len(text) // 8, ctypes.addressof(held))
    call(LIBC.prctl(_SET_SECCOMP, _FILTER, program, 0, 0))
    return f"{len(_REFUSED) + len(_ABSENT)} refused, and sockets" + (
        " but those of drivers" if devices else ""
    )


def _program(machine: _Machine, sockets: tuple[int, ...]) -> bytes:
    """The filter. Each check falls through to the next where it does not hold."""
    forbidden, absent = _REFUSE | errno.EPERM, _REFUSE | errno.ENOSYS
    made = [_step(_LOAD, _ARCHITECTURE), _step(_EQUAL, machine.audit, 1, 0), _step(_RETURN, absent)]
    made.append(_step(_LOAD, _NUMBER))
    if machine.audit == _MACHINES["x86_64"].audit:
        made += [_step(_AT_LEAST, _LEAST_OF_X32, 0, 1), _step(_RETURN, absent)]
    for table, answer in ((_REFUSED, forbidden), (_ABSENT, absent)):
        for numbers in table.values():
            number = numbers[machine.column]
            if number is not None:
                made += [_step(_EQUAL, number, 0, 1), _step(_RETURN, answer)]
    refuse, allow = _step(_RETURN, forbidden), _step(_RETURN, _ALLOW)
    made += _where(machine.clone, 0, [_step(_ANY_BIT, _NEW_NAMESPACES, 0, 1), refuse, allow])
    made += _where(machine.prlimit, 0, [_step(_EQUAL, 0, 0, 1), allow, refuse])
    terminals = [step for n in _TO_TERMINALS for step in (_step(_EQUAL, n, 0, 1), refuse)]
    made += _where(machine.ioctl, 1, [*terminals, allow])
    families = [step for n in sockets for step in (_step(_EQUAL, n, 0, 1), allow)]
    made += _where(machine.socket, 0, [*families, refuse])
    return b"".join([*made, allow])


def _where(number: int, argument: int, steps: list[bytes]) -> list[bytes]:
    """Steps for one call, with the low half of an argument loaded; they end with an answer."""
    load = _step(_LOAD, _ARGUMENTS + 8 * argument)
    return [_step(_EQUAL, number, 0, len(steps) + 1), load, *steps]


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
