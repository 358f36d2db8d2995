"""Networks of given kernels, built and timed as a whole in separate processes.

Kernels may be untrusted code, and forked children could not use a device that is open here.
Importing PyTorch, opening a device and building take seconds. So within `kept` one process serves
all requests of a search, and starts before the first (`prestart`).
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

BEFORE, AFTER = "before", "after"  # phases of a search
SECONDS = 900.0  # seconds that building and timing networks may take
# A separate program, because `multiprocessing` would run the caller's main file again.
_BOOT = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    f"from {__package__}.child import main; main(int(sys.argv[1]))"
)
WORDS = "words.txt"  # file in its folder with its output


@dataclass(frozen=True, slots=True)
class KernelTexts:
    """The texts of a kernel of a network."""

    backend: str  # its name
    variant: str  # equations that the schedule is for
    schedule: str
    source: str
    edited: bool = False  # whether the source is by others


@dataclass(frozen=True, slots=True)
class TimedNetwork:
    """A network to build and time."""

    call: Network
    before: Network | None  # computes constants; None if there are none
    machines: Mapping[str, Machine]  # the target by backend; the program's own is the first
    kernels: Mapping[str, KernelTexts]  # by kernel name, including those of `before`
    each: bool = True  # whether each kernel is timed too

    def served(self, spec: Spec) -> Served:
        """The backend of a kernel."""
        return _served(self, spec.name)

    def nest(self, spec: Spec) -> LoopNest:
        """The nest of a kernel. Raises KernelError if its schedule does not lower."""
        texts = self.kernels[spec.name]
        return lowered(texts.variant, texts.schedule, self.machines[texts.backend], {})


class _Process:
    """A process that builds networks and times them. It ends with this process.

    served: the backend that will probably be timed, whose device it opens at once.
    """

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
        with suppress(OSError):  # if it has ended already, the first request shows that
            self._connection.send((served.machine, served.name))

    def end(self) -> None:
        """Kills it with its children."""
        self._connection.close()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._folder.cleanup()

    def times_of(
        self, networks: Sequence[TimedNetwork]
    ) -> tuple[list[WholeTimes | str], dict[str, float]]:
        """The same as the function `times_of`, with the seconds for building and timing.

        Raises ProcessLookupError with the reason if the process ended or timed out.
        """
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
    """A context in which one process serves all requests for times; it ends with the context. An
    inner context uses the outer one's."""
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
    """Starts the process for `times_of`, if one is kept. served: the backend that will be timed."""
    mine = _KEPT.get()
    if mine is not None and not mine:
        mine.append(_Process(served))


def times_of(networks: Sequence[TimedNetwork], when: str = BEFORE) -> list[WholeTimes | str]:
    """The times of calls of some networks (`whole_times`), or the reasons why there are none.

    They are built and run in a separate process. when: BEFORE or AFTER, for the names of phases.
    """
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
