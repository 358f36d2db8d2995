"""Calls a library's functions in a separate process, on shared memory. The messages are:

the judge's side             the runner's side
                             address of the memory
names of functions           empty, or the library's fault
calls                        empty, or the first text that a function returned
calls to be timed            their seconds; and so on
"""

from __future__ import annotations

import ctypes
import json
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from backends.caged.frames import Ended, Malformed, receive, send

if TYPE_CHECKING:
    import numpy as np

    from backends.caged.memory import Segment

ENTRY = f"{__name__}:serve"
MOST_TEXT = 4096  # bytes of a text; the rest is dropped
_WORD = 8


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function that returns 0, the address of a text, or nothing. arguments: integers,
    including addresses in the runner's memory."""

    function: str
    arguments: tuple[int, ...]


class Native:
    """The functions of a loaded library."""

    def __init__(self, place: socket.socket, memory: Segment):
        self._place = place
        self._memory = memory
        self._start = int.from_bytes(receive(place, _WORD), "little")

    def load(self, functions: Sequence[str], texts: bool = True) -> str:
        """Loads the library. Returns its fault, or an empty text. texts: whether its functions
        return texts, or nothing."""
        return self._ask([texts, list(functions)])

    def address(self, array: np.ndarray) -> int:
        """The address of an array of the memory, for the library."""
        return self._start + self._memory.offset(array)

    def call(self, *calls: Call) -> str:
        """Makes calls in order until one returns a text. Returns that text, else an empty one. The
        text is the library's, so it is not trusted."""
        return self._ask([False, _plain(calls)])

    def seconds(self, *calls: Call) -> float:
        """The seconds of calls in order, by the clock of their process. Raises Malformed if it
        sends no number."""
        said = self._ask([True, _plain(calls)])
        if not said.isascii() or not said.isdecimal():
            raise Malformed("it sent no time")
        return int(said) / 1e9

    def _ask(self, message: list) -> str:
        send(self._place, json.dumps(message).encode())
        return receive(self._place, MOST_TEXT).decode(errors="replace")


def _plain(calls: Sequence[Call]) -> list[list[str | int]]:
    return [[call.function, *call.arguments] for call in calls]


@contextmanager
def native(
    library: Path, memory: Segment, wanted: tuple[str, ...] = (), threads: bool = False
) -> Iterator[Native]:
    """A context with a library in a new process. Raises Died if the block failed because that
    process ended.

    wanted: libraries that it needs. threads: whether it may start threads.
    """
    from backends.caged.process import Program, runner

    with runner(Program(ENTRY, wanted, threads), library, Ended, memory.number) as place:
        yield Native(place, memory)


def serve(place: int, library: str, memory: int) -> None:
    """Runs a runner until the other side closes. memory: its address here."""
    # Explicit arguments, because Python would otherwise make system calls that are refused here.
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, place) as other:
        send(other, memory.to_bytes(_WORD, "little"))
        texts, names = json.loads(receive(other))
        functions, wrong = _loaded(library, names, texts)
        send(other, wrong.encode()[:MOST_TEXT])
        while not wrong:
            timed, asked = json.loads(receive(other))
            calls = [(functions[n], tuple(map(ctypes.c_int64, a))) for n, *a in asked]
            send(other, _timed(calls) if timed else _first_text(calls))


def _loaded(library: str, names: list[str], texts: bool) -> tuple[dict, str]:
    """The functions of a library, and its fault."""
    try:
        held = ctypes.CDLL(library)
    except OSError as error:
        return {}, f"the library cannot be loaded: {error}"
    if missing := [name for name in names if not hasattr(held, name)]:
        return {}, f"the source defines no `{missing[0]}`"
    found = {name: getattr(held, name) for name in names}
    for function in found.values():
        function.restype = ctypes.c_void_p if texts else None
    return found, ""


def _first_text(calls: list[tuple]) -> bytes:
    """Calls functions until one returns a text."""
    for function, arguments in calls:
        if text := function(*arguments):
            return ctypes.string_at(text)[:MOST_TEXT]
    return b""


def _timed(calls: list[tuple]) -> bytes:
    """Calls functions. Returns the nanoseconds that they took."""
    began = time.perf_counter_ns()
    for function, arguments in calls:
        function(*arguments)
    return b"%d" % (time.perf_counter_ns() - began)
