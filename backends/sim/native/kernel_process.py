"""The process that runs a kernel's code for the simulator.

A kernel is a shared library of somebody's. It is loaded in a process that was started as a new program,
so that its memory never held a tensor, an expected result, a secret or the clock. That process runs the
kernel's programs ahead and sends their commands (`host.h`); the simulator checks and carries them out.

    this process       asks for a runner, simulates, has it ended
      the host         a new program with the simulator's module alone; forks a runner for each simulation
        a runner       gives up files and system calls (`cage.h`), loads the library, runs the programs
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from backends.sim.native.load import load

_LINE = 64  # bytes: more than a wait status takes
# The host: `-I -S` loads nothing of this project but the module. Each message brings a runner's socket;
# the next one, which brings none, ends the runner and is answered by its wait status.
_HOST = """
import os, sys, _socket, importlib.machinery, importlib.util
loader = importlib.machinery.ExtensionFileLoader("_simulator", sys.argv[2])
spec = importlib.util.spec_from_loader("_simulator", loader)
module = importlib.util.module_from_spec(spec)
loader.exec_module(module)
control = _socket.socket(fileno=int(sys.argv[1]))
while True:
    said, more, _, _ = control.recvmsg(1, _socket.CMSG_SPACE(4))
    if not said:
        break
    place = int.from_bytes(more[0][2], sys.byteorder)
    runner = os.fork()
    if runner == 0:
        control.close()
        try:
            module.serve_kernel(place)
        finally:
            os._exit(0)
    os.close(place)
    said = control.recv(1)
    os.kill(runner, 9)
    _, status = os.waitpid(runner, 0)
    if not said:
        break
    control.send(b"%d" % status)
"""


class KernelDied(Exception):
    """A kernel's process ended while the simulator waited for it; the number of a signal, or 0."""

    def __init__(self, number: int, words: str):
        super().__init__(words)
        self.number = number


@contextmanager
def kernel_process() -> Iterator[int]:
    """The socket of a new process for one simulation, which ends with the block. KernelDied where the
    simulation failed because that process ended."""
    control = _host(os.getpid())[0]
    here, there = socket.socketpair()
    try:
        with there:
            socket.send_fds(control, [b"r"], [there.fileno()])
        try:
            yield here.fileno()
        finally:
            control.send(b".")
            status = int(control.recv(_LINE))
    except load().KernelEnded as error:
        raise KernelDied(*_end(status, str(error))) from None
    finally:
        here.close()


def _end(status: int, words: str) -> tuple[int, str]:
    """The signal that ended a process, and what happened, in words."""
    number = -os.waitstatus_to_exitcode(status)
    if number <= 0:
        return 0, f"{words}: exit code {-number}"
    return number, f"the kernel died of {signal.Signals(number).name}"


@cache
def _host(owner: int) -> tuple[socket.socket, subprocess.Popen]:
    """The host of a process and the socket to it, started at its first simulation; it ends when that process does.

    owner: the process, as one that is forked later needs a host of its own.
    """
    file = load().__file__
    assert file is not None
    here, there = socket.socketpair()
    kept = {n: os.environ[n] for n in ("LD_LIBRARY_PATH", "PATH") if n in os.environ}
    with there:
        process = subprocess.Popen(
            [
                sys.executable,
                "-I",
                "-S",
                "-c",
                _HOST,
                str(there.fileno()),
                str(Path(file).resolve()),
            ],
            pass_fds=[there.fileno()],
            env=kept,
            stdin=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,  # Ctrl-C is for this process
        )
    return here, process
