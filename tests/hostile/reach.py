"""Acts that reach for files, memory, keys and calls that are no candidate's. For tests: each raises
where it is stopped by the sandbox, and returns where it had its way, also where the kernel answers
with another error than that of a refusal.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import socket
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

from backends.caged.seccomp import ARCHITECTURES
from search.evaluator.calls import _ABSENT, _REFUSED

LIBC = ctypes.CDLL(None, use_errno=True)
OUTSIDE = Path("/tmp/speciate-hostile-outside")  # the test makes it, with the file `kept`
KEPT = OUTSIDE / "kept"


def _refused(result: int, *numbers: int) -> None:
    """PermissionError where a call was refused as the filter refuses it."""
    if result < 0 and ctypes.get_errno() in (numbers or (errno.EPERM,)):
        raise PermissionError(os.strerror(ctypes.get_errno()))


def _system_call(name: str) -> Callable[[str], None]:
    """The act of making a call with no arguments that mean anything."""
    number = {**_REFUSED, **_ABSENT}[name][ARCHITECTURES[platform.machine()].column]

    def act(_: str) -> None:
        ctypes.set_errno(0)
        _refused(LIBC.syscall(number, 0, 0, 0, 0, 0), errno.EPERM, errno.ENOSYS)

    act.__name__ = f"call_{name}"
    return act


def read_kept(_: str) -> None:
    KEPT.read_text()


def read_by_link(_: str) -> None:
    os.symlink(KEPT, "here")
    Path("here").read_text()


def read_by_program(_: str) -> None:
    subprocess.run(["cat", str(KEPT)], check=True, stderr=subprocess.DEVNULL)


def list_outside(_: str) -> None:
    os.listdir(OUTSIDE)


def list_root(_: str) -> None:
    os.listdir("/")


def list_home(_: str) -> None:
    os.listdir(os.path.expanduser(f"~{os.environ.get('USER', 'root')}"))


def list_temporary(_: str) -> None:
    os.listdir("/tmp")


def list_other_candidates(_: str) -> None:
    """The folder in which those of the other evaluations of this worker lie."""
    os.listdir(Path.cwd().parent)


def read_users(_: str) -> None:
    Path("/etc/passwd").read_text()


def read_host(_: str) -> None:
    Path("/etc/hostname").read_text()


def read_tree(_: str) -> None:
    os.listdir(Path(__file__).resolve().parents[2])


def read_disk(_: str) -> None:
    for device in Path("/dev").glob("*da*"):
        device.open("rb").close()
    raise PermissionError("there is no disk, or /dev is not listed")


def read_machine_memory(_: str) -> None:
    Path("/dev/mem").open("rb").close()


def run_foreign_program(_: str) -> None:
    subprocess.run([str(KEPT)], check=True)


def read_memory_by_call(word: str) -> None:
    held = ctypes.create_string_buffer(8)
    one = struct.pack("@PN", ctypes.addressof(held), 8)
    _refused(LIBC.process_vm_readv(os.getpid(), one, 1, one, 1, 0))


def limit_of_other(word: str) -> None:
    _refused(LIBC.prlimit(os.getppid(), 7, None, struct.pack("@QQ", 16, 16)))


def clone_namespace(_: str) -> None:
    number = ARCHITECTURES[platform.machine()].clone
    child = LIBC.syscall(number, 0x10000000 | 17, 0, 0, 0, 0)  # NEWUSER
    if child == 0:
        os._exit(0)
    _refused(child)


def socket_of_virtual_machine(_: str) -> None:
    socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)


def socket_of_files(_: str) -> None:
    socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)


def socket_of_cryptography(_: str) -> None:
    socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)


def type_into_terminal(_: str) -> None:
    fcntl.ioctl(0, 0x5412, b"x")


REACH = (
    *(read_kept, read_by_link, read_by_program, list_outside, list_root, list_home),
    *(list_temporary, list_other_candidates, read_users, read_host, read_tree, read_disk),
    *(read_machine_memory, run_foreign_program, read_memory_by_call, limit_of_other),
    *(clone_namespace, socket_of_virtual_machine, socket_of_files, socket_of_cryptography),
    type_into_terminal,
    *map(
        _system_call,
        """
        ptrace process_vm_writev process_madvise pidfd_getfd kcmp add_key request_key keyctl bpf
        perf_event_open userfaultfd kexec_load kexec_file_load init_module mount umount2 pivot_root
        open_tree move_mount fsopen setns unshare swapon acct settimeofday clock_adjtime personality
        syslog name_to_handle_at open_by_handle_at fanotify_init io_uring_setup io_uring_enter
        io_uring_register clone3
        """.split(),
    ),
)
