"""Turns: processes that share a device, and one at a time that has it alone."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Turns:
    """Locks in a folder that all processes name. Who waits to be alone lets nobody pass before."""

    folder: Path

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Within it others may share the device, and none has it alone."""
        with self._held("gate", fcntl.LOCK_SH):
            room = self._opened("room", fcntl.LOCK_SH)
        try:
            yield
        finally:
            os.close(room)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Within it nobody else has the device."""
        with self._held("gate", fcntl.LOCK_EX), self._held("room", fcntl.LOCK_EX):
            yield

    @contextmanager
    def _held(self, name: str, how: int) -> Iterator[None]:
        file = self._opened(name, how)
        try:
            yield
        finally:
            os.close(file)

    def _opened(self, name: str, how: int) -> int:
        file = os.open(self.folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(file, how)
        return file
