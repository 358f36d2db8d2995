"""A clean process (`backends.gpu.apart`) for tests, forked from the calling process."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from backends.gpu.apart import join, leave, serve


def served(folder: Path) -> tuple[int, int]:
    """The process id of a clean process that works in a folder, and a connection whose closing ends it."""
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
    """Makes a clean process do this process's work in a new folder; yields its process id."""
    folder.mkdir()
    pid, line = served(folder)
    join(line)
    try:
        yield pid
    finally:
        leave()
        os.waitpid(pid, 0)
