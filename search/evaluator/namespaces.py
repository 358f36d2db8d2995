"""Namespaces: a process that sees only its own descendants, none of which outlive it.

    the process that calls `descend`     waits, and ends as the candidate ended
      the first of the namespace         reaps; when it ends, the kernel ends all in the namespace
        the candidate                    returns from `descend`

The candidate is not the first process, because the kernel drops signals that would end the first.
"""

from __future__ import annotations

import os
import resource
import signal
import struct
from pathlib import Path

from backends.caged.linux import LIBC, call

NEW_USER, NEW_PROCESSES, NEW_IPC = 0x10000000, 0x20000000, 0x08000000
SET_PDEATHSIG = 1
_MOST_FILES = 1 << 16
_STATUS = struct.Struct("i")


def descend() -> None:
    """Continues in new user, process and System V IPC namespaces, as another process.

    Raises OSError if the kernel does not permit it; then nothing has changed.
    """
    unshare_as_oneself(NEW_PROCESSES | NEW_IPC)
    read, write = os.pipe()
    first = os.fork()
    if first:
        _keep_only(read)
        _end_like(_status(read, first))
    die_with_parent()
    candidate = os.fork()
    if candidate:
        _keep_only(write)
        _reap(candidate, write)
    os.close(read)
    os.close(write)


def unshare_as_oneself(flags: int) -> None:
    """Enters new namespaces, owned by a new user namespace that maps only this user, with the same
    id."""
    user, group = os.getuid(), os.getgid()
    call(LIBC.unshare(NEW_USER | flags))
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def die_with_parent() -> str:
    """Makes the kernel kill this process when its parent ends."""
    call(LIBC.prctl(SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
    return "SIGKILL"


def _keep_only(file: int) -> None:
    """Closes all files except one, so that the candidate's pipes end with the candidate."""
    os.closerange(0, file)
    os.closerange(file + 1, _MOST_FILES)


def _reap(candidate: int, write: int) -> None:
    """Waits for the candidate and reaps orphans until then. Does not return."""
    while True:
        ended, status = os.wait()
        if ended == candidate:
            os.write(write, _STATUS.pack(status))
            os._exit(0)


def _status(read: int, first: int) -> int:
    """The wait status of the candidate, or of the first process if that ended before."""
    said = os.read(read, _STATUS.size)
    _, own = os.waitpid(first, 0)
    return _STATUS.unpack(said)[0] if said else own


def _end_like(status: int) -> None:
    """Ends this process with a wait status."""
    number = os.waitstatus_to_exitcode(status)
    if number >= 0:
        os._exit(number)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if -number != signal.SIGKILL:
        signal.signal(-number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [-number])
    os.kill(os.getpid(), -number)
