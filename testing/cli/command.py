"""The command in a folder: in a process of its own, as users run it, or in this one."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from search.evolve import main
from testing.cli.variables import variables

GUARD = 1800.0  # seconds: only what hangs waits so long


@dataclass(frozen=True)
class Done:
    """What a run of the command left: its exit code, and what it said."""

    returncode: int
    stdout: str
    stderr: str


def evolve(folder: Path, *words: str, **more: str) -> Done:
    """A run in a process of its own, with more variables."""
    done = subprocess.run(
        [sys.executable, "-m", "search.evolve", "--workers=1", *words],
        env={**os.environ, **variables(folder, folder), **more},
        text=True,
        capture_output=True,
        timeout=GUARD,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def evolve_here(folder: Path, *words: str) -> Done:
    """A run in this process: modules are read by one server, which takes seconds to start."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        with mock.patch.dict(os.environ, variables(folder, folder)):
            code = main(["--workers=1", *words])
    return Done(code, out.getvalue(), err.getvalue())
