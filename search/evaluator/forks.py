"""Helpers for processes that fork on request: sockets whose messages carry a descriptor, and a fork
without its parent's files."""

from __future__ import annotations

import os
import signal
import socket
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from search.evaluator import sandbox

OUTPUT = "output.txt"  # file in a process's folder with its output
_LONGEST = 4096  # bytes of the longest message
_MOST_FILES = 1 << 16


def pair() -> tuple[socket.socket, socket.socket]:
    """Two ends of a socket that preserves message boundaries."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def messages(control: int) -> Iterator[tuple[int, str]]:
    """The descriptor and the text of each message, until the other end closes."""
    with socket.socket(fileno=control) as stream:
        while True:
            said, found, _, _ = socket.recv_fds(stream, _LONGEST, 1)
            if not said or not found:
                return
            _reap()
            yield found[0], said.decode()


def _reap() -> None:
    """Reaps forked children that have ended, because nobody waits for them."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def forked(control: int, end: int) -> bool:
    """Forks. Returns whether this is the child, which keeps `end` and closes `control`."""
    if os.fork():
        os.close(end)
        return False
    os.close(control)
    return True


def detach(folder: Path, *kept: int) -> None:
    """Closes every file except those in `kept`; output goes to a file in the folder."""
    os.chdir(folder)
    nothing = os.open("/dev/null", os.O_RDONLY)
    output = os.open(folder / OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    for low, high in pairwise((2, *sorted(kept), _MOST_FILES)):
        os.closerange(low + 1, high)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    tempfile.tempdir = None
    os.environ.update(sandbox.homes(folder))
