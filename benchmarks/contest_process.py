"""The process of a contest, in which one row of a result file is made: how a run starts it and reads what it left
behind, and how its program begins.

The program writes what is known of its row into a file after each stage, so that it is there when the process is not.
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
Held = Callable[[argparse.Namespace, Notes, DeviceLock], None]  # a contest: it notes what it finds
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
    """The row that a contest's program wrote. Where its process did not end well and told no reason, that and
    the last line of its log are the reason.

    program: a module, see `options_of`.  environment: what this process's own may say otherwise.  limit: seconds in
    which it is not stopped.  folder, name: where the row (`.json`) and the log (`.log`, which grows) are.
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
    """The options that the programs of all contests have."""
    made = argparse.ArgumentParser(prog=program)
    made.add_argument("--work", required=True, type=Path, help="where built things stay")
    made.add_argument("--notes", required=True, type=Path, help="the file for the row")
    made.add_argument("--baselines", required=True, help="beside eager")
    made.add_argument("--compile-seconds", required=True, type=float, help="for one of them")
    made.add_argument("--parent", required=True, type=int, help="the process that started this")
    made.add_argument("--ask", type=int, help="a descriptor to the run")
    made.add_argument("--answer", type=int, help="a descriptor from it")
    made.add_argument("--rehearse", action="store_true", help="without a device")
    return made


def hold(asked: argparse.Namespace, held: Held) -> int:
    """A contest as a program; its exit code. It ends when the process does that started it."""
    ctypes.CDLL(None).prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != asked.parent:
        return 1
    row_of(asked, held)
    return 0


def row_of(asked: argparse.Namespace, held: Held) -> Row:
    """The row of a contest; whatever goes wrong is its reason, as its subject is code of others, and so are kernels."""
    notes = Notes(asked.notes, time.perf_counter)
    lock = DeviceLock(asked.work / "device.lock", asked.ask, asked.answer)
    with notes.faults(), ExitStack() as ended, torch.no_grad():
        ended.push(_traced)
        held(asked, notes, lock)
    return notes.row


def _traced(_: object, error: BaseException | None, __: object) -> None:
    """Puts where something went wrong into the log."""
    if isinstance(error, Exception):
        traceback.print_exception(error)
