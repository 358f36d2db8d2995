"""Attempts the items of a suite, each in its own process, and writes each row when it is complete.

Existing rows are kept, so an interrupted run can be continued.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from backends.backend import Backend
from backends.registry import backend_for, served_by, target
from benchmarks.results import read
from frontends.kernelbench.apart import apart
from ir.errors import KernelError
from ir.machine import Machine

Row = dict[str, Any]
Key = tuple[Any, ...]  # The key that identifies a row.
Item = TypeVar("Item")


class Attempts:
    """One run of a suite's command.

    asked: the options, including those of `options`.
    write: writes the result file from rows in any order.
    line: formats a row as a progress line.
    """

    def __init__(
        self,
        asked: argparse.Namespace,
        key: Callable[[Row], Key],
        write: Callable[[list[Row]], None],
        line: Callable[[Row], str],
    ):
        self.asked, self.key, self.write, self.line = asked, key, write, line
        self.rows: list[Row] = read(asked.out)["rows"]
        self.start = time.monotonic()
        self.lock = threading.Lock()

    def run(self, items: Mapping[Key, Item], attempt: Callable[[Item], Row]) -> None:
        """Attempts the items without a row, or all with `--again`, until the time limit."""
        done = set() if self.asked.again else {self.key(r) for r in self.rows}
        todo = [item for key, item in items.items() if key not in done]
        with ThreadPoolExecutor(self.asked.workers) as pool:
            list(pool.map(lambda item: self._one(item, attempt), todo))

    def _one(self, item: Item, attempt: Callable[[Item], Row]) -> None:
        if time.monotonic() - self.start > self.asked.seconds:
            return
        row = attempt(item)
        with self.lock:
            self.rows[:] = [r for r in self.rows if self.key(r) != self.key(row)]
            self.rows.append(row)
            self.write(self.rows)
        seconds = time.monotonic() - self.start
        print(f"{seconds:6.1f} s  {self.line(row)}", file=sys.stderr, flush=True)


def noted(
    work: Callable[..., Row], task: Callable[[Path], Any], begun: Row, asked: argparse.Namespace
) -> Row:
    """Runs work on a task in its own process and returns its row.

    If the process fails, the row is what it noted so far, or `begun`, with the reason. task: makes
    the task from the file for notes.
    """
    with tempfile.TemporaryDirectory(prefix="notes-") as folder:
        notes = Path(folder) / "row.json"
        try:
            return apart(work, task(notes), seconds=asked.item_seconds, gigabytes=asked.gigabytes)
        except KernelError as error:
            known = json.loads(notes.read_text(encoding="utf-8")) if notes.is_file() else begun
            return {**known, "reason": str(error)}


def serving(name: str, wanted: str | None) -> tuple[Machine, Backend]:
    """Returns a target and its backend: the wanted one, or its first."""
    machine = target(name)
    backend = backend_for(machine, wanted)
    return served_by(machine, backend), backend


def suit(asked: argparse.Namespace, correct_by: str) -> None:
    """Removes the memory limit if attempts open a device.

    The driver of a GPU reserves more addresses than there is memory.
    """
    if correct_by == "device":
        asked.gigabytes = None


def head(asked: argparse.Namespace, command: str) -> dict[str, Any]:
    """Returns the head of a result file."""
    chosen = f" --backend={asked.backend}" if asked.backend else ""
    return {
        "command": f"python3 -m {command}{chosen}",
        "date": date.today().isoformat(),
        "machine": target(asked.target).title,
        "versions": {
            "torch": version("torch"),
            "triton": version("triton"),
            "python": platform.python_version(),
        },
    }


def options(parser: argparse.ArgumentParser, item: str, seconds: float, gigabytes: float) -> None:
    """Adds the options that every suite's command has.

    item: what it attempts, such as a problem.
    seconds, gigabytes: the default limits of one item.
    """
    parser.add_argument("--target", required=True, help="the target")
    parser.add_argument("--backend", help="a backend of the target (default: its first)")
    parser.add_argument("--out", required=True, type=Path, help="the result file")
    parser.add_argument("--workers", type=int, default=2, help=f"{item}s at a time")
    parser.add_argument(
        "--seconds", type=float, default=1e9, help="start nothing after this number of seconds"
    )
    parser.add_argument(
        f"--{item}-seconds",
        type=float,
        default=seconds,
        dest="item_seconds",
        help="time limit of one item",
    )
    parser.add_argument(
        "--gigabytes", type=float, default=gigabytes, help="memory limit of one item, in GB"
    )
    parser.add_argument("--again", action="store_true", help="also try items that have a row")
