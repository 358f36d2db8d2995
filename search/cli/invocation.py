"""The invocation: where and how the command was called, and the signals that end it.

Only this file of the command reads the environment.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from search.store.address import word_without_password

PROGRAM = Path(__file__).parents[2]
_BAZEL = ("./bazelw", "run", "//search:evolve", "--")
# If installed, this file belongs to the package `speciate.search`.
_PYTHON = ("python3", "-m", f"{__name__.removesuffix('.cli.invocation')}.evolve")
LEAST_WIDTH = 40  # least number of characters of a line
MARK = "WORKSPACE"  # a file in the root of a checkout that a copy by a build lacks


@dataclass(frozen=True, slots=True)
class Invocation:
    """Where and how the command was called."""

    # The tree for generated kernels; None outside of a checkout
    checkout: Path | None
    folder: Path  # base of a user's relative paths
    variables: Mapping[str, str]  # the environment
    quiet: bool  # no interactive terminal, so lines are not redrawn
    invocation: tuple[str, ...]  # command prefix, for messages that suggest a command
    workers: int  # the number of cores
    width: int | None = None  # characters of a line of stdout; None if it is no terminal

    @property
    def store(self) -> str:
        """The default path of the store, by the XDG base directories."""
        home = self.variables.get("XDG_DATA_HOME") or "~/.local/share"
        return str(Path(home).expanduser() / "speciate" / "store.db")

    def command(self, words: Sequence[str]) -> str:
        """The command line with these words, without a store's password."""
        return shlex.join((*self.invocation, *map(word_without_password, words)))

    def path(self, given: str) -> Path:
        """The absolute path of a user's path."""
        return self.folder / Path(given).expanduser()


def current_invocation(environ: Mapping[str, str] = os.environ) -> Invocation:
    """The invocation from the environment. `bazel run` sets the tree and the folder of the call."""
    tree = environ.get("BUILD_WORKSPACE_DIRECTORY")
    folder = Path(environ.get("BUILD_WORKING_DIRECTORY") or os.getcwd())
    checkout = Path(tree) if tree else PROGRAM
    inside = bool(tree) or folder.resolve().is_relative_to(PROGRAM.resolve())
    return Invocation(
        checkout=checkout if inside and (checkout / MARK).is_file() else None,
        folder=folder,
        variables=environ,
        quiet=bool(environ.get("CI")) or environ.get("TERM") == "dumb",
        invocation=_BAZEL if tree else _PYTHON,
        workers=len(os.sched_getaffinity(0)),
        width=_width(environ),
    )


def _width(environ: Mapping[str, str]) -> int | None:
    said = environ.get("COLUMNS", "")
    if said.isdigit() and int(said) >= LEAST_WIDTH:
        return int(said)
    try:
        found = os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):  # not a terminal
        return None
    return max(found, LEAST_WIDTH) if found else None


SIGNALS = (signal.SIGINT, signal.SIGTERM)

_Handler = Callable[[int, FrameType | None], Any] | int | None


class Interrupt:
    """A context in which the first signal raises KeyboardInterrupt and is recorded. A second one
    has its default effect."""

    def __init__(self) -> None:
        self.came = False
        self._before: dict[signal.Signals, _Handler] = {}

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is not threading.main_thread():
            return self  # only the main thread can handle signals
        for number in SIGNALS:
            self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _take(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        for each in SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        raise KeyboardInterrupt
