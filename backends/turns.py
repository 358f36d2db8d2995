"""Turns: who uses a device now; a time is measured while nobody else does."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

WAITING, ALONE = "waiting", "alone"
_spent = {WAITING: 0.0, ALONE: 0.0}


def spent() -> dict[str, float]:
    """The seconds that this process has waited for the device, and has had it alone, since the last call."""
    found = dict(_spent)
    _spent.update(dict.fromkeys(_spent, 0.0))
    return found


@dataclass(frozen=True, slots=True)
class Turns:
    """Locks on two existing files, shared by all processes of this machine."""

    # A file that all processes can read. Empty: nothing is locked.
    file: str = ""
    # Another such file. A process holds it while it acquires the first lock, or waits to be alone;
    # otherwise others could keep sharing the device while one waits.
    door: str = ""

    @contextmanager
    def together(self) -> Iterator[None]:
        """Inside, no other process has the device alone. Waits for one that has it alone, or waits to."""
        with self._held(self.door, fcntl.LOCK_EX):
            place = self._locked(self.file, fcntl.LOCK_SH)
        with self._released(place):
            yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Inside, no other process uses the device. Waits for those that do."""
        with self._held(self.door, fcntl.LOCK_EX), self._held(self.file, fcntl.LOCK_EX):
            began = time.monotonic()
            try:
                yield
            finally:
                if self.file:
                    _spent[ALONE] += time.monotonic() - began

    @contextmanager
    def _held(self, file: str, how: int) -> Iterator[None]:
        with self._released(self._locked(file, how)):
            yield

    def _locked(self, file: str, how: int) -> int | None:
        """A file descriptor that holds a lock; None if nothing is locked."""
        if not file:
            return None
        place = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        began = time.monotonic()
        try:
            fcntl.flock(place, how)
        except BaseException:
            os.close(place)
            raise
        _spent[WAITING] += time.monotonic() - began
        return place

    @contextmanager
    def _released(self, place: int | None) -> Iterator[None]:
        try:
            yield
        finally:
            if place is not None:
                os.close(place)
