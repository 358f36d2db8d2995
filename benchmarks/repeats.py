"""Compares result files of a repeated race: the spread of the speed-ups, by row.

Every file is one run of the same command, with the same sources and baselines. A speed-up is
relative to the fastest baseline of its run: of two that are equally fast, it may be either. A row's
spread is its largest speed-up over its smallest, minus 1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.results import Table, read, row_key, save
from ir.errors import KernelError

WITHIN = 0.02  # The wanted spread.
LEAST = 2  # Minimum number of runs.
SOURCE = "source"  # Must be equal in every run of a row; otherwise the times are not comparable.
HEAD = ("date", "machine", "driver", "versions")
EXAMPLES = """
examples:
  python3 -m benchmarks.repeats --out=benchmarks/results/h100/judged_thrice.json 1.json 2.json 3.json
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns exit code 2 for wrong usage, 1 if a row's spread is larger."""
    asked = _parser().parse_args(arguments)
    try:
        made = compared(asked.files)
    except KernelError as error:
        print(f"repeats: {error}", file=sys.stderr)
        return 2
    save(asked.out, made)
    said = made["summary"]
    print(
        f"{said['within']} of {said['rows']} rows within {WITHIN:.0%}, largest {said['largest']:.2%}"
    )
    return int(said["within"] < said["rows"])


def compared(files: Sequence[Path]) -> Table:
    """Returns the table of some result files. Raises KernelError if they are not runs of one
    race."""
    if len(files) < LEAST:
        raise KernelError(f"{len(files)} file is no repetition", allowed=f"{LEAST} or more files")
    for file in files:
        if not file.is_file():
            raise KernelError("there is no such file", where=str(file))
    runs = [read(file) for file in files]
    found = [{row_key(row): row for row in run["rows"]} for run in runs]
    for file, run, by in zip(files, runs, found, strict=True):
        if any(run[name] != runs[0][name] for name in HEAD[1:]):
            raise KernelError("it is of another machine or other versions", where=str(file))
        if list(by) != list(found[0]):
            raise KernelError("it has other rows than the first file", where=str(file))
    rows = [_row([by[key] for by in found]) for key in found[0]]
    if not rows:
        raise KernelError("there are no rows", where=str(files[0]))
    return {
        "repeats": len(files),
        "command": runs[0]["command"],
        **{name: runs[0][name] for name in HEAD},
        "within": WITHIN,
        "summary": summary(rows),
        "rows": rows,
    }


def summary(rows: Sequence[Table]) -> Table:
    """Counts the rows that repeat. A row that failed in a run does not."""
    spreads = [row["spread"] for row in rows]
    return {
        "rows": len(rows),
        "within": sum(s is not None and s <= WITHIN for s in spreads),
        "failed": sum(s is None for s in spreads),
        "largest": max((s for s in spreads if s is not None), default=0.0),
    }


def _row(runs: Sequence[Table]) -> Table:
    """Merges one row of all runs."""
    first = runs[0]
    made: Table = {name: first[name] for name in ("kernel", "dtype", "shape", SOURCE)}
    made["fastest"] = "/".join(dict.fromkeys(str(run["fastest"]) for run in runs))
    for run in runs:
        if run[SOURCE] != first[SOURCE]:
            reason = f"`source` is {run[SOURCE]} in one run and {first[SOURCE]} in another"
            return made | {"spread": None, "reason": reason}
        if not run["speedup"]:
            return made | {"spread": None, "reason": run.get("reason") or "no baseline was timed"}
        if (raced := _raced(run)) != _raced(first):
            other = ", ".join(sorted(raced ^ _raced(first)))
            return made | {"spread": None, "reason": f"{other} has a time in some runs only"}
    speedups: list[Any] = [run["speedup"] for run in runs]
    return made | {
        "us": [run["us"] for run in runs],
        "baseline_us": [run["baselines_us"][run["fastest"]] for run in runs],
        "speedups": speedups,
        "spread": max(speedups) / min(speedups) - 1,
    }


def _raced(run: Table) -> frozenset[str]:
    """Returns the baselines that have a time."""
    return frozenset(name for name, us in run["baselines_us"].items() if us)


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="repeats",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--out", required=True, type=Path, help="the file to write")
    made.add_argument("files", nargs="+", type=Path, help="result files of benchmarks.starter")
    return made


if __name__ == "__main__":
    sys.exit(main())
