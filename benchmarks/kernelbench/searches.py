"""Searches for problems, each in its own program. The race prepares the problem with their
records."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.kernelbench.problems import ProblemFile
from benchmarks.kernelbench.rows import Row

OVERHEAD = 3.0  # Time of a search relative to its time limit: it builds and times too.
AROUND = 300.0  # Limit of the time before and after it, in seconds.
# Fields of a race's row that the row of a search has too.
SEARCHED = (
    *("correct", "reason", "stage", "us", "p20_us", "p80_us", "runs", "time_kind", "speedups"),
    *("baselines_us", "rel_err", "kernels", "steps", "by_records", "own_kernels_only"),
)


class ProblemSearch:
    """The search for a problem. asked: the arguments of the race. products: see `Wanted`."""

    def __init__(self, asked: argparse.Namespace, entry: ProblemFile, products: str):
        self.asked, self.entry, self.products = asked, entry, products
        self.folder = asked.work / "search" / f"level{entry.level}" / entry.name
        self.records = self.folder / "records"

    def run(self) -> dict[str, Any]:
        """Returns the search's report, with a `reason` if there is no result."""
        self.folder.mkdir(parents=True, exist_ok=True)
        notes, began = self.folder / "notes.json", time.monotonic()
        notes.unlink(missing_ok=True)
        why = self._ran(notes)
        found: dict[str, Any] = {"asked_s": self.asked.seconds_each, "correct": False}
        found["took_s"] = round(time.monotonic() - began, 1)
        if why or not notes.is_file():
            return found | {"stage": "search", "reason": why or "it says nothing"}
        return found | json.loads(notes.read_text("utf-8"))

    def _ran(self, notes: Path) -> str:
        """Runs the program. Returns why it failed; empty if it did not."""
        limit = OVERHEAD * self.asked.seconds_each + AROUND
        log = self.folder / "log"
        around = {**os.environ, "PYTHONPATH": os.pathsep.join(p or "." for p in sys.path)}
        with log.open("ab") as file:
            process = subprocess.Popen(
                self._command(notes),
                env=around,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
            try:
                code = process.wait(limit)
            except subprocess.TimeoutExpired:
                return f"it took longer than {limit:g} s"
            finally:
                with suppress(ProcessLookupError):  # Also ends what it started.
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if code == 0:
            return ""
        said = log.read_text("utf-8", "replace").strip().splitlines()[-1:]
        return f"it ended with {code}: {''.join(said)}"[:400]

    def _command(self, notes: Path) -> list[str]:
        asked = self.asked
        options = {
            "problem": self.entry.path.resolve(),
            "target": asked.target,
            "records": self.records.resolve(),
            "store": (self.folder / "runs.db").resolve(),
            "notes": notes.resolve(),
            "seconds": f"{asked.seconds_each:g}",
            "workers": max(2, (os.cpu_count() or 1) // asked.searches),
            "parent": os.getpid(),
            "products": self.products,
        }
        words = [f"--{name}={value}" for name, value in options.items()]
        words += ["--reduced"] if asked.reduced else []
        return [sys.executable, "-m", f"{__package__}.search", *words]


def searched_words(row: Row) -> str:
    """Formats the result of a search for people. Empty if there was none."""
    found = row.get("searched")
    if found is None:
        return ""
    if not found["correct"]:
        return f"; searched: FAILED at {found.get('stage')}: {str(found.get('reason'))[:200]}"
    return f"; searched: {found['us']:.1f} us, {found['speedup']:.2f} over the fastest"
