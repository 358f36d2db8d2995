"""Commands of the project, each in a process of its own and in a folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SECONDS = 1200.0  # a guard against a command that hangs: none takes a tenth of it
AT_A_TIME = 8  # searches take turns to time, and share the cores for the rest
TAIL = 2000  # characters of what a failed command said


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command left."""

    words: tuple[str, ...]  # without the interpreter
    code: int
    out: str
    err: str
    seconds: float  # of wall-clock time
    folder: Path

    def require(self, code: int = 0) -> Ran:
        """Itself; AssertionError with what it said where it ended with another exit code."""
        assert self.code == code, f"{self.command} ended with {self.code}:\n{self.err[-TAIL:]}"
        return self

    @property
    def json(self) -> Any:
        """The JSON object on stdout."""
        return json.loads(self.require().out)

    @property
    def command(self) -> str:
        """As a user types it; folders of this run are left out."""
        return " ".join(("python3", *self.words)).replace(f"{self.folder}{os.sep}", "")


def run(folder: Path, *words: str) -> Ran:
    """Runs `python3 words` in a folder, where `-m` finds the project."""
    folder.mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join([str(ROOT), *(p for p in [os.environ.get("PYTHONPATH")] if p)])
    environ = {**os.environ, "PYTHONPATH": path}
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=environ,
        text=True,
        capture_output=True,
        timeout=SECONDS,
    )
    seconds = time.monotonic() - began
    return Ran(words, done.returncode, done.stdout, done.stderr, seconds, folder)


class Launched:
    """Commands that run side by side, each until someone asks for its result."""

    def __init__(self, pool: ThreadPoolExecutor):
        self.pool = pool
        self.started: dict[str, Future[Ran]] = {}

    def start(self, name: str, folder: Path, *words: str) -> None:
        """Starts a command as soon as there is room."""
        self.started[name] = self.pool.submit(run, folder, *words)

    def __getitem__(self, name: str) -> Ran:
        return self.started[name].result()

    def wait(self) -> None:
        """Returns when all have ended: the device is idle."""
        for future in self.started.values():
            future.exception()


@contextmanager
def launched() -> Iterator[Launched]:
    """A place for commands; what has not begun at the end is dropped."""
    pool = ThreadPoolExecutor(AT_A_TIME)
    try:
        yield Launched(pool)
    finally:
        pool.shutdown(cancel_futures=True)
