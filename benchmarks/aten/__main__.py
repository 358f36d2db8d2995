"""Turns ATen's operators into kernels of a target, and writes a result file.

Each operator and dtype is imported, lowered, built, run on PyTorch's samples and compared with
PyTorch, in a process of its own. Rows are written as they are done, and those that are done are
left alone, so a run that stops can go on.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from backends.registry import backend_for, target
from benchmarks.aten.attempt import Task, attempt
from benchmarks.aten.rows import Row, key, put, write
from benchmarks.aten.samples import NAMES, dtypes
from benchmarks.results import read
from frontends.dtypes import NAMES as DTYPES
from frontends.kernelbench.apart import apart
from ir.errors import KernelError

EXAMPLES = """
examples:
  python3 -m benchmarks.aten --target=npu --out=r.json --samples=2 --dtypes=f32
  python3 -m benchmarks.aten --target=mi300 --out=r.json --only=add,mul --again
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; exit code 2 for wrong use, 1 where an operator failed."""
    asked = _parser().parse_args(arguments)
    try:
        chosen = list(wanted(asked.only, asked.dtypes))
        machine = target(asked.target)
        available = backend_for(machine).available(machine)
        if not available["correct_by"]:
            raise KernelError(f"nothing runs here: {available['why']}")
    except KernelError as error:
        print(f"aten: {error}", file=sys.stderr)
        return 2
    known = {"target": machine.name, "correct_by": available["correct_by"]}
    return _Run(asked, known).all(chosen)


def wanted(only: str, dtypes_: str) -> Iterator[tuple[str, str]]:
    """Operators and dtypes, f32 of all operators first. Both are given as names between commas; all
    where a text is empty. KernelError for a name that is not there."""
    names, kinds = _chosen(only, NAMES), _chosen(dtypes_, tuple(DTYPES.values()))
    pairs = [(n, name, DTYPES[d]) for name in names for n, d in enumerate(dtypes(name))]
    return ((name, d) for _, name, d in sorted(pairs, key=lambda p: p[0]) if d in kinds)


def _chosen(text: str, there: Sequence[str]) -> Sequence[str]:
    words = [w for w in text.split(",") if w]
    if unknown := [w for w in words if w not in there]:
        raise KernelError(f"`{unknown[0]}` is not there", allowed=", ".join(there))
    return [n for n in there if n in words] if words else there


class _Run:
    """One run of the command. known: what all its rows say."""

    def __init__(self, asked: argparse.Namespace, known: Mapping[str, Any]):
        self.asked, self.known = asked, known
        self.rows: list[Row] = read(asked.out)["rows"]
        self.start = time.monotonic()
        self.lock = threading.Lock()

    def all(self, chosen: Sequence[tuple[str, str]]) -> int:
        done = {key(r) for r in self.rows}
        todo = [pair for pair in chosen if self.asked.again or pair not in done]
        with ThreadPoolExecutor(self.asked.workers) as pool:
            list(pool.map(lambda pair: self.one(*pair), todo))
        return int(any(r["verdict"] == "fail" for r in self.rows))

    def one(self, name: str, dtype: str) -> None:
        if time.monotonic() - self.start > self.asked.seconds:
            return
        began = time.monotonic()
        row = {"operator": name, "dtype": dtype, **self.known, **tried(name, dtype, self.asked)}
        row["seconds"] = round(time.monotonic() - began, 1)
        with self.lock:
            put(self.rows, row)
            write(self.asked.out, _head(self.asked), self.rows)
        print(f"{time.monotonic() - self.start:6.1f} s  {line(row)}", file=sys.stderr, flush=True)


def tried(name: str, dtype: str, asked: argparse.Namespace) -> Row:
    """What an attempt came to; what is known of it where its process ended."""
    with tempfile.TemporaryDirectory(prefix="notes-") as folder:
        notes = Path(folder) / "row.json"
        task = Task(name, dtype, asked.target, asked.samples, notes)
        try:
            return apart(
                attempt, task, seconds=asked.operator_seconds, gigabytes=asked.gigabytes
            )
        except KernelError as error:
            begun = {"samples": 0, "passed": 0, "verdict": "fail"}
            row = json.loads(notes.read_text(encoding="utf-8")) if notes.is_file() else begun
            at = row.pop("at", "")
            return {**row, "reason": f"{at}: {error}" if at else str(error)}


def line(row: Row) -> str:
    """A row in one line, for a person who waits."""
    count = f"{row['passed']} of {row['samples']}"
    what = f"{row['operator']} {row['dtype']}: {row['verdict']}, {count}, {row['seconds']} s"
    return f"{what}  {row['reason'][:300]}"


def _head(asked: argparse.Namespace) -> dict[str, Any]:
    return {
        "command": f"python3 -m benchmarks.aten --target={asked.target} --out={asked.out} "
        f"--samples={asked.samples}",
        "date": date.today().isoformat(),
        "machine": target(asked.target).title,
        "versions": {
            "torch": version("torch"),
            "triton": version("triton"),
            "python": platform.python_version(),
        },
    }


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="aten", description=__doc__.splitlines()[0], epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    made.add_argument("--target", required=True, help="the chip")
    made.add_argument("--out", required=True, type=Path, help="the result file")
    made.add_argument("--only", default="", help="names of operators, such as add,mul")
    made.add_argument("--dtypes", default="", help="of f32, bf16, f16, i64, b8; all without it")
    made.add_argument("--samples", type=int, default=3, help="of an operator and dtype")
    made.add_argument("--workers", type=int, default=2, help="operators at a time")
    made.add_argument("--seconds", type=float, default=1e9, help="start nothing after so many")
    made.add_argument("--operator-seconds", type=float, default=60, help="that one may take")
    made.add_argument("--gigabytes", type=float, default=8, help="that one may hold")
    made.add_argument("--again", action="store_true", help="try what is done, too")
    return made


if __name__ == "__main__":
    sys.exit(main())
