"""Turns: processes that share a device, and one at a time that has it alone."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

POLL = 0.2  # seconds between two looks at who shares


@dataclass(frozen=True, slots=True)
class DeviceTurns:
    """Locks in a folder that all processes name. While anyone waits to be alone, or is, nobody
    comes to share: who waits has one turn after the other, and the sharing stops for all once.

    With patience, who wants to be alone first lets others come and go for so long, or until nobody shares or
    another is out of patience. So compilers work in parallel, and times are taken in batches.
    """

    folder: Path
    patience: float = 0.0  # seconds

    @contextmanager
    def shared(self) -> Iterator[Callable[[], None]]:
        """Within it others may share the device, and none has it alone. What it gives is called
        now and then, when nothing is in progress there: it lets in who waits to be alone."""
        room = self._room()

        def give_way() -> None:
            nonlocal room
            if self._waited_for():
                os.close(room)
                room = self._room()

        try:
            yield give_way
        finally:
            os.close(room)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Within it nobody else has the device."""
        end = time.monotonic() + self.patience
        while time.monotonic() < end and self._shared() and not self._waited_for():
            time.sleep(POLL)
        with self._held("queue", fcntl.LOCK_SH), self._held("room", fcntl.LOCK_EX):
            yield

    def _room(self) -> int:
        with self._held("queue", fcntl.LOCK_EX):  # nobody waits
            return self._opened("room", fcntl.LOCK_SH)

    def _waited_for(self) -> bool:
        """Whether anybody waits to be alone, out of patience, or is alone."""
        return self._taken("queue")

    def _shared(self) -> bool:
        """Whether anybody is within."""
        return self._taken("room")

    def _taken(self, name: str) -> bool:
        try:
            os.close(self._opened(name, fcntl.LOCK_EX | fcntl.LOCK_NB))
        except BlockingIOError:
            return True
        return False

    @contextmanager
    def _held(self, name: str, how: int) -> Iterator[None]:
        file = self._opened(name, how)
        try:
            yield
        finally:
            os.close(file)

    def _opened(self, name: str, how: int) -> int:
        file = os.open(self.folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, how)
        except BaseException:
            os.close(file)
            raise
        return file
