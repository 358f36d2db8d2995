"""Turns: who uses a device now; a time is measured while nobody else does."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Turns:
    """Turns by locks on two files that are there, for all processes of this machine."""

    # Any that all of them can read. Empty: no turns are taken.
    file: str = ""
    # Another such file. Everyone passes it to get a turn, and who waits to be alone holds it:
    # otherwise others could share the device without end while one waits.
    door: str = ""

    @contextmanager
    def together(self) -> Iterator[None]:
        """While this is entered, nobody is alone; waits for who is, or waits to be."""
        with self._held(self.door, fcntl.LOCK_EX):
            place = self._locked(self.file, fcntl.LOCK_SH)
        with self._released(place):
            yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While this is entered, nobody else has a turn; waits for those who have."""
        with self._held(self.door, fcntl.LOCK_EX), self._held(self.file, fcntl.LOCK_EX):
            yield

    @contextmanager
    def _held(self, file: str, how: int) -> Iterator[None]:
        with self._released(self._locked(file, how)):
            yield

    def _locked(self, file: str, how: int) -> int | None:
        """A descriptor that holds a lock; None where no turns are taken."""
        if not file:
            return None
        place = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(place, how)
        except BaseException:
            os.close(place)
            raise
        return place

    @contextmanager
    def _released(self, place: int | None) -> Iterator[None]:
        try:
            yield
        finally:
            if place is not None:
                os.close(place)
