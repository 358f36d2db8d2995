"""Turns KernelBench's problems into kernels of a target, and writes a result file.

Each problem is scaled (with --reduced), imported, lowered, built, run and compared with PyTorch, in
a process of its own. Rows are written as they are done, and those that are done are left alone, so a
run that stops can go on. What runs is code of others: the checkout's.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from backends.registry import backend_for, target
from benchmarks.kernelbench.attempt import Task, attempt
from benchmarks.kernelbench.problems import Entry, entries
from benchmarks.kernelbench.rows import Row, put, write
from benchmarks.results import read
from frontends.kernelbench.apart import apart
from frontends.kernelbench.scaled import ELEMENTS, WORK
from ir.errors import KernelError

EXAMPLES = """
examples:
  python3 -m benchmarks.kernelbench --problems=KernelBench/KernelBench --level=1 --target=mi300 \\
      --out=r.json --reduced
  python3 -m benchmarks.kernelbench --problems=KernelBench/KernelBench --level=2 --target=npu \\
      --out=r.json --reduced --only=1,5-9 --again
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; exit code 2 for wrong use, 1 where a problem failed."""
    asked = _parser().parse_args(arguments)
    try:
        chosen = entries(asked.problems, asked.level, asked.only)
        machine = target(asked.target)
        backend = backend_for(machine)
        available = backend.available(machine)
        if not available["correct_by"]:
            raise KernelError(f"nothing runs here: {available['why']}")
    except KernelError as error:
        print(f"kernelbench: {error}", file=sys.stderr)
        return 2
    known = {
        "kernel": None,
        "level": asked.level,
        "dtype": "f32",
        "target": machine.name,
        "backend": backend.manifest.name,
        "correct_by": available["correct_by"],
    }
    return _Run(asked, known).all(chosen)


class _Run:
    """One run of the command. known: what all its rows say."""

    def __init__(self, asked: argparse.Namespace, known: Mapping[str, Any]):
        self.asked, self.known = asked, known
        self.rows: list[Row] = read(asked.out)["rows"]
        self.start = time.monotonic()
        self.lock = threading.Lock()

    def all(self, chosen: Sequence[Entry]) -> int:
        done = {r["problem"] for r in self.rows if r["level"] == self.asked.level}
        todo = [e for e in chosen if self.asked.again or e.name not in done]
        with ThreadPoolExecutor(self.asked.workers) as pool:
            list(pool.map(self.one, todo))
        return int(any(not r["correct"] for r in self.rows))

    def one(self, entry: Entry) -> None:
        if time.monotonic() - self.start > self.asked.seconds:
            return
        row = {
            **self.known,
            "problem": entry.name,
            "number": entry.number,
            "degenerate": entry.degenerate,
            **tried(entry, self.asked),
        }
        with self.lock:
            put(self.rows, row)
            write(self.asked.out, _head(self.asked), self.rows)
        print(f"{time.monotonic() - self.start:6.1f} s  {line(row)}", file=sys.stderr, flush=True)


def tried(entry: Entry, asked: argparse.Namespace) -> Row:
    """What an attempt came to; what is known of it where its process ended."""
    with tempfile.TemporaryDirectory(prefix="notes-") as folder:
        notes = Path(folder) / "row.json"
        task = Task(entry.path, asked.target, asked.reduced, notes)
        try:
            return apart(attempt, task, seconds=asked.problem_seconds, gigabytes=asked.gigabytes)
        except KernelError as error:
            begun = {"correct": False, "stage": "read"}
            row = json.loads(notes.read_text(encoding="utf-8")) if notes.is_file() else begun
            return {**row, "reason": str(error)}


def line(row: Row) -> str:
    """A row in one line, for a person who waits."""
    took = " ".join(f"{k}={row[k]:.1f}" for k in row if k.endswith("_s"))
    what = f"{row['problem']}: {row.get('kernels', '-')} kernels, {took}"
    if row["correct"]:
        return f"{what}, error {row['rel_err']:.1e}"
    return f"{what}: FAILED at {row['stage']}: {row['reason'][:300]}"


def _head(asked: argparse.Namespace) -> dict[str, Any]:
    sizes = {"elements": ELEMENTS, "work": WORK} if asked.reduced else None
    options = f"--target={asked.target} --out=FILE{' --reduced' if asked.reduced else ''}"
    return {
        "command": f"python3 -m benchmarks.kernelbench --problems=DIR --level=N {options}",
        "date": date.today().isoformat(),
        "machine": target(asked.target).title,
        "reduced": sizes,
        "versions": {
            "torch": version("torch"),
            "triton": version("triton"),
            "python": platform.python_version(),
        },
    }


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="kernelbench", description=__doc__.splitlines()[0], epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    made.add_argument("--problems", required=True, type=Path, help="the folder with level1, ...")
    made.add_argument("--level", required=True, type=int)
    made.add_argument("--target", required=True, help="the chip")
    made.add_argument("--out", required=True, type=Path, help="the result file")
    made.add_argument("--reduced", action="store_true", help="at sizes that can be simulated")
    made.add_argument("--only", default="", help="numbers of problems, such as 1,5-9")
    made.add_argument("--workers", type=int, default=2, help="problems at a time")
    made.add_argument("--seconds", type=float, default=1e9, help="start no problem after so many")
    made.add_argument("--problem-seconds", type=float, default=120, help="that one may take")
    made.add_argument("--gigabytes", type=float, default=16, help="that one may hold")
    made.add_argument("--again", action="store_true", help="try problems that are done, too")
    return made


if __name__ == "__main__":
    sys.exit(main())
