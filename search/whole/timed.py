"""Networks of given kernels, built and timed as a whole, in a process of their own: kernels may be
code of others, and a device that was opened here could not be used by what is forked.

It takes seconds to import PyTorch, to open a device and to build. So within `kept` one process is asked for all
that a search wants to know, and begins before that (`prestart`).
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from backends.registry import backend_for
from backends.served import Served
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.network import Network
from ir.spec import Spec
from search.core.lowered import lowered
from search.core.phases import phase, went_to
from search.evaluator.local import module_path
from search.whole.times import WholeTimes

BEFORE, AFTER = "before", "after"  # a search
SECONDS = 900.0  # that building and timing networks may take
# A program of its own: `multiprocessing` would run the caller's main file again.
_BOOT = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    f"from {__package__}.child import main; main(int(sys.argv[1]))"
)
WORDS = "words.txt"  # in its folder, what it prints


@dataclass(frozen=True, slots=True)
class KernelTexts:
    """A kernel of a network."""

    backend: str  # its name
    variant: str  # the equations that the schedule is for
    schedule: str
    source: str
    edited: bool = False  # somebody else wrote the source


@dataclass(frozen=True, slots=True)
class TimedNetwork:
    """What runs apart."""

    call: Network
    before: Network | None  # computes constants; None where there are none
    machines: Mapping[str, Machine]  # the target by backend, the program's own first
    kernels: Mapping[str, KernelTexts]  # by the name of a kernel, those of `before` among them
    each: bool = True  # whether each kernel is timed, too

    def served(self, spec: Spec) -> Served:
        """The backend of a kernel."""
        return _served(self, spec.name)

    def nest(self, spec: Spec) -> LoopNest:
        """That of a kernel; KernelError where its schedule does not lower."""
        texts = self.kernels[spec.name]
        return lowered(texts.variant, texts.schedule, self.machines[texts.backend], {})


class _Process:
    """A process that builds networks and has them timed. It ends when this one does. served: what will
    probably be timed, whose device it opens at once."""

    def __init__(self, served: Served) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="whole-")
        self._words = Path(self._folder.name) / WORDS
        here, there = socket.socketpair()
        with there, self._words.open("wb") as words:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _BOOT, str(there.fileno()), *module_path()],
                cwd=self._folder.name,
                pass_fds=[there.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=words,
                start_new_session=True,
            )
        self._connection = Connection(here.detach())
        with suppress(OSError):  # it has ended already, as will be seen when it is asked
            self._connection.send((served.machine, served.name))

    def end(self) -> None:
        """Ends it, and what it started."""
        self._connection.close()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._folder.cleanup()

    def times_of(
        self, networks: Sequence[TimedNetwork]
    ) -> tuple[list[WholeTimes | str], dict[str, float]]:
        """As below, and the seconds that building and timing took. ProcessLookupError where it has ended, or had to be ended; the message says why."""
        try:
            self._connection.send(list(networks))
            if not self._connection.poll(SECONDS):
                raise ProcessLookupError(f"it takes longer than {SECONDS:g} s")
            found, seconds = self._connection.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError) as error:
            last = self._words.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            said = f"its process ended with {self._process.wait()}: {''.join(last[-1:])}"
            raise ProcessLookupError(said) from error
        return [one if isinstance(one, str) else WholeTimes(**one) for one in found], seconds


_KEPT: ContextVar[list[_Process] | None] = ContextVar("kept", default=None)  # at most one


@contextmanager
def kept() -> Iterator[None]:
    """Within it one process is asked for all times; it ends with this. Within another one that one's is."""
    if _KEPT.get() is not None:
        yield
        return
    mine: list[_Process] = []
    token = _KEPT.set(mine)
    try:
        yield
    finally:
        _KEPT.reset(token)
        for process in mine:
            process.end()


def prestart(served: Served) -> None:
    """Has a process begin that `times_of` will use, where one is kept. served: what will be timed."""
    mine = _KEPT.get()
    if mine is not None and not mine:
        mine.append(_Process(served))


def times_of(networks: Sequence[TimedNetwork], when: str = BEFORE) -> list[WholeTimes | str]:
    """How long calls of some networks take (`whole_times`), or why that cannot be had. They are built
    and run in a process of its own. when: of a search, as its phases are called."""
    if not networks:
        return []
    with kept(), phase(f"{when}: wait for what times calls"):
        first = next(iter(networks[0].kernels))
        prestart(_served(networks[0], first))
        mine = _KEPT.get()
        assert mine, "it was started just now"
        try:
            found, seconds = mine[0].times_of(networks)
        except ProcessLookupError as error:
            mine.pop().end()
            return [str(error)] * len(networks)
        for name, taken in seconds.items():
            went_to(f"{when}: {name}", taken)
        return found


def _served(network: TimedNetwork, kernel: str) -> Served:
    name = network.kernels[kernel].backend
    return Served(backend_for(network.machines[name], name), network.machines[name])
