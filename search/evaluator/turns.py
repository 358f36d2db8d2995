"""Turns: who uses a device now; a time is measured while nobody else does."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Turns:
    """Turns by a lock on a file that is there, for all processes of this machine.

    file: any that all of them can read. Empty: no turns are taken.
    """

    file: str = ""

    @contextmanager
    def together(self) -> Iterator[None]:
        """While this is entered, nobody is alone; waits for who is."""
        with self._held(fcntl.LOCK_SH):
            yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While this is entered, nobody else has a turn; waits for those who have."""
        with self._held(fcntl.LOCK_EX):
            yield

    @contextmanager
    def _held(self, how: int) -> Iterator[None]:
        if not self.file:
            yield
            return
        place = os.open(self.file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(place, how)
            yield
        finally:
            os.close(place)
