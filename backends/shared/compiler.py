"""A compiler as a command: its limits, its first errors, its version."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from backends.backend import BackendError, Built, MachineFault
from backends.shared.diagnostics import first_errors

TRIES = 3  # attempts to get a compiler's version, because it may be killed
# Messages of drivers and of programs that start a linker.
_KILLED = re.compile(
    r"(Killed|Terminated) signal terminated program|terminated with signal (9|15)\b"
)


@dataclass(frozen=True, slots=True)
class Compiler:
    """A command that compiles one source file to a shared library."""

    command: str
    flags: tuple[str, ...]
    seconds: float = 60.0  # time limit of one build

    def build(self, source: str, folder: Path, name: str, include: Sequence[Path]) -> Built:
        """Compiles a source to a library, both in `folder`. Raises BackendError with the first
        errors.

        name: of the source file.
        """
        text = folder / name
        library = text.with_suffix(".so")
        text.write_text(source, encoding="utf-8")
        paths = (f"-I{path}" for path in include)
        command = [self.command, *self.flags, *paths, text.name, "-o", library.name]
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=self.seconds
            )
        except FileNotFoundError:
            raise BackendError("build", f"there is no {self.command}; install it") from None
        except subprocess.TimeoutExpired:
            # Wall time: processor time has its own limit, which is the candidate's.
            raise MachineFault("build", f"{self.command} took over {self.seconds:g} s") from None
        if done.returncode:
            require_not_killed(self.command, done)
            raise BackendError("build", first_errors(done.stderr) or done.stderr[-400:])
        return Built(library, {"library_bytes": float(os.path.getsize(library))})

    def version(self) -> str:
        """The compiler's name and version; empty if it is missing."""
        return _version(self.command)


@cache
def _version(command: str) -> str:
    for _ in range(TRIES):
        try:
            done = subprocess.run(
                [command, "-dumpfullversion"], capture_output=True, text=True, check=False
            )
        except FileNotFoundError:
            return ""
        if done.returncode == 0:
            return f"{command} {done.stdout.strip()}"
    raise MachineFault("build", f"{command} does not say its version: {done.stderr.strip()}")


def require_not_killed(command: str, done: subprocess.CompletedProcess[str]) -> None:
    """Raises MachineFault if the compiler or one of its programs was killed from outside."""
    if done.returncode in (-signal.SIGKILL, -signal.SIGTERM) or _KILLED.search(done.stderr):
        raise MachineFault("build", f"{command} was killed")
