"""The process of a contest, which makes one row of a result file.

This module starts the process and reads its result. It also has the entry point of the process's
program. The program writes the known part of its row to a file after each stage, so the file
survives a failure of the process.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch

from benchmarks.crew import Crew
from benchmarks.device_lock import DeviceLock
from benchmarks.notes import MOST_WORDS, Notes

Row = dict[str, Any]
Held = Callable[[argparse.Namespace, Notes, DeviceLock], None]  # A contest. It notes its results.
_SET_PDEATHSIG = 1


def contested(
    crew: Crew,
    program: str,
    options: Sequence[str],
    environment: Mapping[str, str],
    limit: float,
    folder: Path,
    name: str,
) -> Row:
    """Returns the row that a contest's program wrote.

    If its process failed without a reason, the row's reason is that and the last line of its log.

    program: a module, see `options_of`.
    environment: variables that override this process's own.
    limit: seconds while it is not stopped.
    folder, name: place of the row (`.json`) and of the log (`.log`, which grows).
    """
    notes, log = folder.resolve() / f"{name}.json", folder.resolve() / f"{name}.log"
    notes.unlink(missing_ok=True)
    command = [sys.executable, "-m", program, *options]
    command += [f"--notes={notes}", f"--parent={os.getpid()}"]
    around = {**os.environ, "PYTHONPATH": os.pathsep.join(p or "." for p in sys.path)}
    with log.open("ab") as file:
        reason = crew.run(command, {**environment, **around}, limit, file.fileno())
    row: Row = json.loads(notes.read_text("utf-8")) if notes.is_file() else {}
    if reason and not row.get("reason"):
        last = log.read_text("utf-8", "replace").strip().splitlines()[-1:]
        row |= {"correct": False, "reason": f"{reason}: {''.join(last)}"[:MOST_WORDS]}
    return row


def options_of(program: str) -> argparse.ArgumentParser:
    """Returns the options that the programs of all contests have."""
    made = argparse.ArgumentParser(prog=program)
    made.add_argument("--work", required=True, type=Path, help="the folder of builds")
    made.add_argument("--notes", required=True, type=Path, help="the file for the row")
    made.add_argument(
        "--baselines", required=True, help="modes of PyTorch besides eager, separated by commas"
    )
    made.add_argument(
        "--compile-seconds", required=True, type=float, help="limit for one baseline, in seconds"
    )
    made.add_argument("--parent", required=True, type=int, help="the parent process")
    made.add_argument("--ask", type=int, help="a descriptor to write to the run")
    made.add_argument("--answer", type=int, help="a descriptor to read from the run")
    made.add_argument("--rehearse", action="store_true", help="run without a device")
    return made


def hold(asked: argparse.Namespace, held: Held) -> int:
    """Runs a contest as a program and returns its exit code. It ends when its parent process
    ends."""
    ctypes.CDLL(None).prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != asked.parent:
        return 1
    row_of(asked, held)
    return 0


def row_of(asked: argparse.Namespace, held: Held) -> Row:
    """Returns the row of a contest.

    Every exception becomes the row's reason, because the subject and the kernels are foreign code.
    """
    notes = Notes(asked.notes, time.perf_counter)
    lock = DeviceLock(asked.work / "device.lock", asked.ask, asked.answer)
    with notes.faults(), ExitStack() as ended, torch.no_grad():
        ended.push(_traced)
        held(asked, notes, lock)
    return notes.row


def _traced(_: object, error: BaseException | None, __: object) -> None:
    """Writes the traceback of an error to the log."""
    if isinstance(error, Exception):
        traceback.print_exception(error)
