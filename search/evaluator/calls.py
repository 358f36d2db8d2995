"""A filter of system calls for a candidate's process: seccomp in classic BPF.

See https://docs.kernel.org/userspace-api/seccomp_filter.html. A filter is permanent and also holds
for every process that this one starts. It refuses calls that reach other processes' memory, kernel
programs, keys, mounts, namespaces and settings of the machine. Calls of compilers and drivers are
allowed.
"""

from __future__ import annotations

from collections.abc import Mapping

from backends.caged.seccomp import (
    ABSENT,
    ALLOW,
    ANY_BIT,
    ARCHITECTURE,
    ARCHITECTURES,
    AT_LEAST,
    EQUAL,
    LEAST_OF_X32,
    LOAD,
    NUMBER,
    REFUSED,
    RETURN,
    Architecture,
    here,
    install,
    step,
    where,
)

_NEW_NAMESPACES = 0x7E020000  # flags of `clone`
_TO_TERMINALS = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX: they insert input into a terminal
_UNIX, _INTERNET, _INTERNET_6, _NETLINK = 1, 2, 10, 16
_OF_DRIVERS = (_UNIX, _INTERNET, _INTERNET_6, _NETLINK)  # sockets that a device's driver may use

# By name: the number on x86-64 and on aarch64; None if the architecture has no such call.
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
# The filter answers as if the kernel lacked these, so that callers fall back to other calls. The
# filter cannot see the flags of `clone3`.
_ABSENT: Mapping[str, tuple[int, int]] = {
    "clone3": (435, 435),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
}


def refuse_calls(devices: tuple[str, ...]) -> str:
    """Installs the filter and returns a description of it. Raises OSError if the kernel does not
    permit it, or if the architecture is unknown.

    devices: if there are any, sockets that a driver may use are allowed. They reach nothing outside
    the network namespace.
    """
    install(_program(here(), _OF_DRIVERS if devices else ()))
    return f"{len(_REFUSED) + len(_ABSENT)} refused, and sockets" + (
        " but those of drivers" if devices else ""
    )


def _program(machine: Architecture, sockets: tuple[int, ...]) -> bytes:
    """The program of the filter. Each check falls through to the next if it does not match."""
    made = [step(LOAD, ARCHITECTURE), step(EQUAL, machine.audit, 1, 0), step(RETURN, ABSENT)]
    made.append(step(LOAD, NUMBER))
    if machine.audit == ARCHITECTURES["x86_64"].audit:
        made += [step(AT_LEAST, LEAST_OF_X32, 0, 1), step(RETURN, ABSENT)]
    for table, answer in ((_REFUSED, REFUSED), (_ABSENT, ABSENT)):
        for numbers in table.values():
            number = numbers[machine.column]
            if number is not None:
                made += [step(EQUAL, number, 0, 1), step(RETURN, answer)]
    refuse, allow = step(RETURN, REFUSED), step(RETURN, ALLOW)
    made += where(machine.clone, 0, [step(ANY_BIT, _NEW_NAMESPACES, 0, 1), refuse, allow])
    made += where(machine.prlimit, 0, [step(EQUAL, 0, 0, 1), allow, refuse])
    terminals = [s for n in _TO_TERMINALS for s in (step(EQUAL, n, 0, 1), refuse)]
    made += where(machine.ioctl, 1, [*terminals, allow])
    families = [s for n in sockets for s in (step(EQUAL, n, 0, 1), allow)]
    made += where(machine.socket, 0, [*families, refuse])
    return b"".join([*made, allow])
