"""Runs independent work on all cores, in forked processes. Scheduling and building are Python code,
which threads would run one at a time."""

from __future__ import annotations

import ctypes
import gc
import os
import pickle
import select
import signal
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_SET_PDEATHSIG = 1
_PLACE = struct.Struct("<I")  # an item's number
_HEAD = struct.Struct("<II")  # header of a result: its item's number, its size in bytes
_MOST = 4096  # items whose numbers fit into a pipe
_FAILED = b""
# Garbage collection threshold in such a process, which lives only as long as its work. Python's
# default of 700 took an eighth of the scheduling time. The garbage left in cycles is tracebacks of
# illegal schedules.
_COLLECTED = 10_000


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def on_all_cores(work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """The result of `work` on each item, in order.

    Each core's process takes one item after another. Results return by pickle. If a process fails
    on an item, this process runs `work` on it again, so that errors are raised here. So `work` must
    have no side effects but files. For one core or one item, no process is started.
    """
    count = min(cores(), len(items))
    if count < 2 or len(items) > _MOST:
        yield from map(work, items)
        return
    with _Workers(lambda n: work(items[n]), len(items), count) as workers:
        for n, item in enumerate(items):
            found = workers.result(n)
            yield pickle.loads(found) if found != _FAILED else work(item)


class _Workers:
    """Forked processes that share a list of items. work: called with an item's number."""

    def __init__(self, work: Callable[[int], object], items: int, count: int):
        self.found: dict[int, bytes] = {}
        self.children: list[int] = []
        self.open: list[int] = []  # pipes of children that may still send results
        sys.stdout.flush()
        sys.stderr.flush()
        places, more = os.pipe()
        with open(more, "wb") as file:
            file.write(b"".join(map(_PLACE.pack, range(items))))
        for _ in range(count):
            read, write = os.pipe()
            parent = os.getpid()
            child = os.fork()
            if child == 0:
                _serve(work, places, write, parent)
            os.close(write)
            self.children.append(child)
            self.open.append(read)
        os.close(places)

    def __enter__(self) -> _Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for child in self.children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            with suppress(ChildProcessError):  # it was waited for elsewhere
                os.waitpid(child, 0)
        for pipe in self.open:
            os.close(pipe)

    def result(self, item: int) -> bytes:
        """The result for an item, once it arrives; `_FAILED` if no child can send it any more."""
        while item not in self.found and self.open:
            for pipe in select.select(self.open, [], [])[0]:
                self._receive(pipe)
        return self.found.pop(item, _FAILED)

    def _receive(self, pipe: int) -> None:
        """Receives one result of a child, or its end."""
        head = _exactly(pipe, _HEAD.size)
        if head is not None:
            item, size = _HEAD.unpack(head)
            data = _exactly(pipe, size)
            if data is not None:
                self.found[item] = data
                return
        os.close(pipe)
        self.open.remove(pipe)


def _exactly(pipe: int, size: int) -> bytes | None:
    """Exactly `size` bytes of a pipe; None if it ends before."""
    parts = []
    while size:
        part = os.read(pipe, size)
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _serve(work: Callable[[int], object], places: int, write: int, parent: int) -> None:
    """Runs the child process; does not return."""
    try:
        gc.freeze()  # a collection would write to all of the parent's pages, and so copy them
        first, *later = gc.get_threshold()
        gc.set_threshold(max(_COLLECTED, first), *later)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
        ctypes.CDLL(None).prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # the parent died before the signal on its death was set up
            os._exit(1)
        while place := os.read(places, _PLACE.size):
            (item,) = _PLACE.unpack(place)
            try:
                data = pickle.dumps(work(item), protocol=pickle.HIGHEST_PROTOCOL)
            except Exception:  # the parent runs it again, and raises the error
                data = _FAILED
            left = memoryview(_HEAD.pack(item, len(data)) + data)
            while left:
                left = left[os.write(write, left) :]
    finally:
        os._exit(0)
