"""Compares twenty third-party PyTorch modules with PyTorch on a device.

Each module is compiled, checked, profiled and timed in its own process, several in parallel. While
one process takes a time, it has the device exclusively and the others are stopped. A row is written
when it is complete, so the same command continues an interrupted run.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import secrets
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

from backends.registry import backend_for, target
from benchmarks import device as machine_room
from benchmarks.baselines import MODES
from benchmarks.contest_process import contested
from benchmarks.crew import Crew
from benchmarks.kernelbench.contest import machine_facts
from benchmarks.modules.catalogue import chosen
from benchmarks.modules.entry import Entry
from benchmarks.modules.rows import Row, done, line, put, summary, words, write
from benchmarks.results import read
from frontends.kernelbench.apart import apart
from ir.errors import KernelError
from ir.source import near
from search.cli.invocation import Interrupt

WRONG_USE, INTERRUPTED = 2, 130
OVERHEAD = 2.0  # Time of a search relative to its time limit: it builds and checks too.
EXAMPLES = """
examples:
  python3 -m benchmarks.modules --target=h100 --out=benchmarks/results/h100/modules.json
  python3 -m benchmarks.modules --target=h100 --out=modules.json --only=llama_layer,resnet50 \\
      --seconds-each=180
  python3 -m benchmarks.modules --target=h100 --out=r.json --tiny --rehearse --only=lstm
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command.

    Returns exit code 2 for wrong usage, 1 if a module failed or did not run, 130 if it was
    interrupted.
    """
    asked = _parser().parse_args(arguments)
    try:
        entries = chosen(asked.only)
        machine = target(asked.target)
        baselines(asked.baselines)
        if asked.rehearse:
            available = backend_for(machine).available(machine)
        else:
            available = machine_room.require(machine, "--rehearse tries the command")
    except KernelError as error:
        print(f"modules: {error}", file=sys.stderr)
        return WRONG_USE
    return _Run(asked, available).all(entries)


def baselines(text: str) -> list[str]:
    """Parses modes separated by commas. Raises KernelError for an unknown mode."""
    names = [n for n in text.split(",") if n]
    for name in names:
        if name not in MODES:
            raise KernelError(
                f"`{name}` is no baseline",
                where="--baselines",
                allowed=f"{', '.join(MODES)}; eager is always raced",
                hint=near(name, MODES),
            )
    return names


class _Run:
    """One run of the command."""

    def __init__(self, asked: argparse.Namespace, available: Mapping[str, Any]):
        self.asked, self.available = asked, available
        self.rows: list[Row] = read(asked.out)["rows"]
        self.start, self.lock, self.crew = time.monotonic(), threading.Lock(), Crew()
        asked.work.mkdir(parents=True, exist_ok=True)
        self.seed = secrets.randbelow(1 << 30) if asked.seed is None else asked.seed
        self.facts = apart(machine_facts, asked.rehearse, gigabytes=None)

    def all(self, entries: Sequence[Entry]) -> int:
        """Runs all incomplete modules, then a search for each, one at a time.

        A search uses all cores and the device. The next one's process loads its module meanwhile.
        """
        known, names = {r["module"]: r for r in self.rows}, baselines(self.asked.baselines)
        todo = [e for e in entries if self.asked.again or not done(known.get(e.name), names)]
        workers = max(1, self.asked.workers)
        with (
            Interrupt(),
            ThreadPoolExecutor(workers) as pool,
            ThreadPoolExecutor(min(workers, 2)) as two,
        ):
            try:
                finished = list(pool.map(self.one, todo))
                finished += two.map(self.searched, entries if self.asked.seconds_each else ())
            except KeyboardInterrupt:
                for each in (pool, two):
                    each.shutdown(wait=False, cancel_futures=True)
                self.crew.end()
                print("stopped; run the same command to continue", file=sys.stderr, flush=True)
                return INTERRUPTED
        print(words(summary(self.rows)), file=sys.stderr)
        if left := len(finished) - sum(finished):
            print(f"{left} modules are left; run the same command to continue", file=sys.stderr)
        wanted = {e.name for e in entries}
        wrong = [r for r in self.rows if r["module"] in wanted and not _good(r)]
        return int(bool(wrong) or bool(left))

    def one(self, entry: Entry) -> bool:
        """Makes the row of a module. Returns False if no time is left for it."""
        row: Row = {
            "module": entry.name,
            "package": entry.package,
            "dtype": entry.dtype,
            "sizes": dict(entry.tiny if self.asked.tiny else entry.sizes),
            "backend": backend_for(target(self.asked.target)).manifest.name,
            "correct": False,
            "correct_by": self.available["correct_by"],
        }
        if entry.missing:
            return self.put(row | {"not_run": f"package {entry.missing} missing"})
        if self.late():
            return False
        self.say(f"{entry.name}: started")
        row["package_version"] = importlib.metadata.version(entry.package)
        return self.put(row | self.contested(entry, 0.0))

    def searched(self, entry: Entry) -> bool:
        """Searches for a module whose row is correct. Returns False if no time is left for it."""
        with self.lock:
            row = next((r for r in self.rows if r["module"] == entry.name), None)
        if row is None or not row["correct"] or ("searched" in row and not self.asked.again):
            return True
        if self.late():
            return False
        seconds = self.asked.seconds_each
        self.say(f"{entry.name}: a search of {seconds:g} s")
        found = {"asked_s": seconds, "correct": False} | self.contested(entry, seconds)
        if found["correct"]:
            found["speedup"] = row["baselines_us"][row["fastest"]] / found["us"]
        return self.put(row | {"searched": found})

    def late(self) -> bool:
        return time.monotonic() - self.start > self.asked.seconds

    def contested(self, entry: Entry, seconds_each: float) -> Row:
        """Runs a module's contest in its own process and returns its row. If the process fails, the
        row has what is known."""
        asked = self.asked
        options = [f"--module={entry.name}", f"--target={asked.target}", f"--seed={self.seed}"]
        options += [f"--work={asked.work.resolve()}", f"--baselines={asked.baselines}"]
        options += [f"--compile-seconds={asked.compile_seconds}", f"--seconds-each={seconds_each}"]
        options += [f"--{name}" for name in ("tiny", "rehearse") if getattr(asked, name)]
        limit = asked.limit + OVERHEAD * seconds_each
        limit *= 2 if seconds_each else 1  # It may wait for another search.
        began = time.monotonic()
        program, around = "benchmarks.modules.contest", self.environment()
        found = contested(self.crew, program, options, around, limit, asked.work, entry.name)
        return found | {"took_s": round(time.monotonic() - began, 1)}

    def environment(self) -> dict[str, str]:
        """Returns the environment of the processes.

        Each may use twice its share of the cores to compile, because they rarely all do so at once.
        """
        threads = max(1, 2 * (os.cpu_count() or 1) // max(1, self.asked.workers))
        return {
            "TORCHINDUCTOR_COMPILE_THREADS": str(threads),
            "TORCHINDUCTOR_CACHE_DIR": str((self.asked.work / "inductor").resolve()),
            "HF_HUB_OFFLINE": "1",
        }

    def put(self, row: Row) -> bool:
        """Writes a row, except for a module whose process this run ended itself."""
        if self.crew.ended:
            return False
        with self.lock:
            put(self.rows, row)
            write(self.asked.out, self.head(), self.rows)
        self.say(line(row))
        return True

    def say(self, text: str) -> None:
        seconds = time.monotonic() - self.start
        print(f"{seconds:6.1f} s  {text}", file=sys.stderr, flush=True)

    def head(self) -> dict[str, Any]:
        asked = self.asked
        options = f" --seconds-each={asked.seconds_each:g}" if asked.seconds_each else ""
        options += "".join(f" --{name}" for name in ("tiny", "rehearse") if getattr(asked, name))
        return {
            "command": f"python3 -m benchmarks.modules --target={asked.target} --out=FILE"
            f" --baselines={asked.baselines}{options}",
            "date": date.today().isoformat(),
            "suite": "modules",
            "seed": self.seed,
            **self.facts,
        }


def _good(row: Row) -> bool:
    return row["correct"] and row.get("searched", {}).get("correct", True)


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="benchmarks.modules",
        description=__doc__.splitlines()[0],
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    cores = os.cpu_count() or 1
    made.add_argument("--target", required=True, help="the target")
    made.add_argument("--out", required=True, type=Path, help="the result file")
    made.add_argument("--only", default="", help="names of modules, separated by commas")
    made.add_argument(
        "--baselines",
        default=",".join(MODES),
        help="modes of PyTorch besides eager, separated by commas",
    )
    made.add_argument(
        "--seconds-each",
        type=float,
        default=0.0,
        help="seconds of search, after the seed schedules",
    )
    made.add_argument("--limit", type=float, default=300.0, help="limit for one module, in seconds")
    made.add_argument(
        "--compile-seconds", type=float, default=120.0, help="limit for one baseline, in seconds"
    )
    made.add_argument(
        "--seconds", type=float, default=1e9, help="start nothing after this number of seconds"
    )
    made.add_argument(
        "--workers", type=int, default=max(1, min(6, cores // 2)), help="modules in parallel"
    )
    made.add_argument("--seed", type=int, help="seed of parameters and draws (default: a new one)")
    made.add_argument(
        "--work",
        type=Path,
        default=Path(tempfile.gettempdir()) / "modules",
        help="the folder of logs, searches and PyTorch's compiled code",
    )
    made.add_argument("--tiny", action="store_true", help="use sizes that any machine can run")
    made.add_argument(
        "--rehearse", action="store_true", help="run without the device, with fixed times"
    )
    made.add_argument("--again", action="store_true", help="also measure modules that have a row")
    return made


if __name__ == "__main__":
    sys.exit(main())
