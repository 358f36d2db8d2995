"""A clean process (`backends.gpu.apart`) for tests: a fork of the one that asks."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from backends.gpu.apart import join, leave, serve


def served(folder: Path) -> tuple[int, int]:
    """The number of a process that works in a folder, and a line to it, at whose end it ends."""
    here, there = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        here.close()
        try:
            serve(there.fileno(), folder)
        finally:
            os._exit(0)
    there.close()
    return pid, here.detach()


@contextmanager
def clean_process(folder: Path) -> Iterator[int]:
    """Has such a process do this one's work in a folder, which it makes; its number."""
    folder.mkdir()
    pid, line = served(folder)
    join(line)
    try:
        yield pid
    finally:
        leave()
        os.waitpid(pid, 0)
