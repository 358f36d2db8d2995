"""Processes that run untrusted native code.

A candidate's library is loaded in a process that was started as a new program. So its memory never
contained a tensor's reference, an expected result, a secret or the clock.

    this process       requests a runner, communicates with it, ends it
      the host         a new program (`host.py`), which forks a runner for each library
        a runner       gives up files and system calls (`cage.py`), then loads the library
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_KINDS: dict[int, str] = {signal.SIGXCPU: "timeout", signal.SIGKILL: "machine"}
_LINE = 64  # bytes; longer than any wait status
_HOST = Path(__file__).with_name("host.py")


@dataclass(frozen=True, slots=True)
class Program:
    """The program of runners: see `host.py`."""

    entry: str
    wanted: tuple[str, ...] = ()
    threads: bool = False  # whether runners may start threads and read the clock


class Died(Exception):
    """A runner ended during a request."""

    def __init__(self, number: int, words: str):
        super().__init__(words)
        self.number = number  # of a signal, or 0
        self.kind = _KINDS.get(number, "crash")  # kind of the failure, as in `BackendError`


@contextmanager
def runner(
    program: Program, library: Path, ended: type[Exception], memory: int | None = None
) -> Iterator[socket.socket]:
    """A context with the socket of a new process for one library.

    ended: exception of the block if that process ended; it becomes Died with the reason. memory:
    number of a segment to attach.
    """
    control = host(program, os.getpid())[0]
    here, there = socket.socketpair()
    try:
        with there:
            message = json.dumps([str(library), memory])
            socket.send_fds(control, [message.encode()], [there.fileno()])
        try:
            yield here
        finally:
            control.send(b".")
            status = int(control.recv(_LINE))
    except ended as error:
        raise Died(*_end(status, str(error))) from None
    finally:
        here.close()


def _end(status: int, words: str) -> tuple[int, str]:
    """The signal that ended a process, and the event in words."""
    number = -os.waitstatus_to_exitcode(status)
    if number <= 0:
        return 0, f"{words}: exit code {-number}"
    return number, f"the kernel died of {signal.Signals(number).name}"


@cache
def host(program: Program, owner: int) -> tuple[socket.socket, subprocess.Popen]:
    """The host of a process and the socket to it, started at its first use. It ends with that
    process.

    owner: the process; a process that is forked later needs its own host.
    """
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    kept = {n: os.environ[n] for n in ("LD_LIBRARY_PATH", "PATH") if n in os.environ}
    with there:
        process = subprocess.Popen(
            [
                *(sys.executable, "-I", "-S", str(_HOST.resolve())),
                *(str(there.fileno()), program.entry, str(int(program.threads)), *program.wanted),
            ],
            pass_fds=[there.fileno()],
            env=kept,
            stdin=subprocess.DEVNULL,
            # discards a kernel's output, so that it cannot get into a reason or a prompt
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,  # Ctrl-C is for this process only
        )
    return here, process
