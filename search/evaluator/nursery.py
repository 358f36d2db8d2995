"""A nursery: a process that has imported what workers need, and forks them for one search after
another.

A separately started worker imports its backends and draws inputs and references for its kernel.
Here a template imports once. A stem is forked from it and set up for the benches of a kernel.
Workers are forked from the stem and share its memory. A stem is kept for a while, because the same
kernel is often searched again.

Requests are sent over sockets whose messages carry a descriptor. The template gets the file of a
stem's benches; a stem gets the folder of a worker. Closing a socket ends its reader.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from backends.backend import Warms
from backends.registry import backend_for
from backends.served import Served
from ir.digest import text_digest
from ir.errors import KernelError
from search.evaluator.forks import forked, messages, pair
from search.evaluator.local import Worker, module_path
from search.evaluator.sandbox import environment
from search.evaluator.stages import Bench, Stages
from search.evaluator.worker import serve, set_up

KEPT = 4  # stems; each holds the inputs and references of a kernel
WARM = "warm "  # prefix of a message that only loads the backends of some benches
BORN = b"b"  # first message of a worker, with a descriptor of its process
_BOOT = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    f"from {__package__}.nursery import template; template(int(sys.argv[1]))"
)


class Forked:
    """A worker process that is not a child of this one, with the interface of
    `subprocess.Popen`."""

    def __init__(self, connection: Connection):
        self._connection = connection
        # a descriptor; None before the process exists and after it ended
        self._process: int | None = None

    def born(self) -> bool:
        """Waits until the process exists. Returns False if it ended before."""
        with socket.socket(fileno=os.dup(self._connection.fileno())) as stream:
            word, found, _, _ = socket.recv_fds(stream, len(BORN), 1)
        if found:
            self._process = found[0]
        return word == BORN

    def wait(self, timeout: float | None = None) -> int:
        """Waits until it has ended. Raises TimeoutExpired if that takes longer."""
        if self._process is not None:
            if not select.select([self._process], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a worker", timeout or 0.0)
            os.close(self._process)
            self._process = None
        return 0

    def kill(self) -> None:
        """Kills it."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._process, signal.SIGKILL)


class Nursery:
    """Starts workers; a context. Its processes end with it, and with this process."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="speciate-")
        self._control: socket.socket | None = None  # to the template
        self._process: subprocess.Popen[bytes] | None = None
        self._stems: OrderedDict[str, socket.socket] = OrderedDict()
        self._expected: Sequence[Bench] = ()

    def __enter__(self) -> Nursery:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends its processes. Workers continue until their own connections close."""
        self._drop()
        self._folder.cleanup()

    def warm(self, served: Iterable[Served]) -> None:
        """Loads backends in the template, and returns at once."""
        opens = {s.name: (s.machine, partial(backend_for, s.machine, s.name)) for s in served}
        here, there = pair()
        with here, there, suppress(OSError):
            benches = [Bench("", machine, opened, {}) for machine, opened in opens.values()]
            said = WARM + str(self._file(benches)[1])
            socket.send_fds(self._template(), [said.encode()], [there.fileno()])

    def expect(self, benches: Sequence[Bench]) -> None:
        """Sets up other benches as soon as the next worker has begun, because they will probably be
        started next."""
        self._expected = benches

    def start(self, benches: Sequence[Bench]) -> Worker:
        """A new worker; see `LocalEvaluator`.

        If it ends before it is ready, the template or the stem may be the cause, so the next worker
        gets new ones.
        """
        home = Path(tempfile.mkdtemp(prefix="speciate-"))
        here, there = socket.socketpair()
        with there:
            try:
                stem = self._stem(benches)
                socket.send_fds(stem, [str(home).encode()], [there.fileno()])
                if self._expected:
                    self._stem(self._expected)
                    self._expected = ()
            except OSError:
                self._drop()
        connection = Connection(here.detach())
        process = Forked(connection)
        return Worker(process, connection, home, born=process.born)

    def failed(self) -> None:
        """Drops the template and the stems, because a worker ended before it was ready."""
        self._drop()

    def _stem(self, benches: Sequence[Bench]) -> socket.socket:
        key, file = self._file(benches)
        if key not in self._stems:
            while len(self._stems) >= KEPT:
                self._stems.popitem(last=False)[1].close()
            here, there = pair()
            with there:
                socket.send_fds(self._template(), [str(file).encode()], [there.fileno()])
            self._stems[key] = here
        self._stems.move_to_end(key)
        return self._stems[key]

    def _file(self, benches: Sequence[Bench]) -> tuple[str, Path]:
        """The digest of benches, and the file that holds them."""
        data = pickle.dumps(tuple(benches))
        key = text_digest(data.hex())
        file = Path(self._folder.name) / key
        if not file.exists():  # the template may be reading an existing file
            file.write_bytes(data)
        return key, file

    def _template(self) -> socket.socket:
        if self._control is None:
            here, there = pair()
            with there:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _BOOT, str(there.fileno()), *module_path()],
                    cwd=self._folder.name,
                    env=environment(os.environ),
                    pass_fds=[there.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    start_new_session=True,  # Ctrl-C reaches only the search, which then ends it
                )
            self._control = here
        return self._control

    def _drop(self) -> None:
        for stem in self._stems.values():
            stem.close()
        self._stems.clear()
        if self._control is not None and self._process is not None:
            self._control.close()
            self._control = None
            self._process.kill()
            self._process.wait()


def template(control: int) -> None:
    """The template's program: forks a stem for each message, which names the file of its benches.
    See also `WARM`."""
    for end, said in messages(control):
        benches: Sequence[Bench] = pickle.loads(Path(said.removeprefix(WARM)).read_bytes())
        for bench in benches:  # for all later stems
            with suppress(KernelError):
                backend = bench.open()
                if isinstance(backend, Warms):
                    backend.warm(bench.machine)
        if said.startswith(WARM):
            os.close(end)
        elif forked(control, end):
            _stem(end, benches)


def _stem(control: int, benches: Sequence[Bench]) -> None:
    """Runs a stem: forks a worker for each message, which names its folder. Does not return."""
    made = set_up(benches, all_cores=True)
    for end, home in messages(control):
        if forked(control, end):
            _worker(end, Path(home), made)
    os._exit(0)


def _worker(end: int, home: Path, made: dict[str, Stages] | KernelError) -> None:
    """Runs a worker. Does not return."""
    try:
        os.setsid()
        os.chdir(home)
        own = os.pidfd_open(os.getpid())
        with socket.socket(fileno=os.dup(end)) as stream:
            socket.send_fds(stream, [BORN], [own])
        os.close(own)
        serve(Connection(end), home, made)
    finally:
        os._exit(0)
