"""Merges result files of one suite into one, by stated rules.

For each problem or module, the whole row of the last file that has it counts, correct or not. A
mode that it lacks, because that took too long, is not taken from an earlier row. The files must be
of one suite, one kind of GPU and the same sizes, with the same versions of PyTorch, Triton and the
driver. Otherwise their times are not comparable. The merged file lists the runs, and each row names
its run.

A run that only searched for what an earlier one raced adds its search to that row. The row still
belongs to the earlier run, and its search names its own run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.kernelbench import harness, race_rows
from benchmarks.kernelbench import rows as problems
from benchmarks.modules import rows as modules
from benchmarks.results import read
from ir.errors import KernelError

Row = dict[str, Any]
Put = Callable[[list[Row], Row], None]  # Puts a row in the place of the same problem or module.
Write = Callable[[Path, Mapping[str, Any], Sequence[Row]], None]  # Writes a result file.
SUITES: Mapping[str, tuple[Put, Write]] = {
    "kernelbench": (problems.put, race_rows.write),
    "kernelbench_harness": (problems.put, harness.write),
    "modules": (modules.put, modules.write),
}
ALIKE = ("suite", "sizes", "harness", "machine", "driver", "versions")  # Equal in all runs.
TOLD = ("command", "date", "clocks_mhz")  # The merged file has these of each run.
RUNS, SEARCHED = "runs", "searched"
EXAMPLES = """
examples:
  python3 -m benchmarks.merge first.json second.json --out=merged.json
"""


def merged(files: Sequence[Path]) -> tuple[dict[str, Any], list[Row]]:
    """Returns the head and the rows of several result files, the earliest first.

    A merged file contributes the runs that it lists. Raises KernelError for files that cannot be
    compared, or without rows.
    """
    head: dict[str, Any] = {}
    rows: list[Row] = []
    runs: list[Mapping[str, Any]] = []
    for file in files:
        table = read(file)
        if not table["rows"]:
            raise KernelError("it has no rows", where=str(file), allowed="what a race wrote")
        if table.get("suite") not in SUITES:
            raise KernelError(
                "it is of no suite whose runs are merged",
                where=str(file),
                allowed=f"`suite`: {', '.join(SUITES)}",
            )
        head = head or {name: table[name] for name in ALIKE if name in table}
        for name in ALIKE:
            if table.get(name) != head.get(name):
                raise KernelError(
                    f"its `{name}` is {table.get(name)!r}, that of the first file {head.get(name)!r}",
                    where=str(file),
                    hint="merge runs of one kind of GPU with the same versions",
                )
        first = len(runs)
        runs += table.get(RUNS) or [{name: table.get(name) for name in TOLD}]
        put, _ = SUITES[table["suite"]]
        for row in table["rows"]:
            # A run that continued a merged file has rows of others, but not the list of their runs.
            here = {**row, "run": first + (row.get("run", 0) if RUNS in table else 0)}
            put(rows, _beside(here, rows))
    counted = [{**run, "rows": _of_run(rows, n)} for n, run in enumerate(runs)]
    command = "python3 -m benchmarks.merge RUN.json ... --out=FILE"
    last = max(str(run["date"]) for run in runs)
    return {"command": command, "date": last, **head, RUNS: counted}, rows


def _beside(row: Row, rows: Sequence[Row]) -> Row:
    """Returns the row that counts, given the rows of earlier runs.

    It is the row itself, or the earlier row of the same race with the new search.
    """
    same = next((r for r in rows if _raced(r) == _raced(row)), None)
    if same is None:
        return row
    search = row.get(SEARCHED)
    if search is None or _search(search) == _search(same.get(SEARCHED, {})):
        return same
    return {**same, SEARCHED: {"run": row["run"], **search}}


def _raced(row: Row) -> Row:
    """Returns the part of a row that comes from a race."""
    return {n: v for n, v in row.items() if n not in ("run", SEARCHED)}


def _search(found: Mapping[str, Any]) -> Row:
    return {n: v for n, v in found.items() if n != "run"}


def _of_run(rows: Sequence[Row], run: int) -> int:
    """Returns how many rows, or searches of rows, belong to a run."""
    return sum(run in (r["run"], r.get(SEARCHED, {}).get("run")) for r in rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns exit code 2, and writes nothing, for files that cannot be
    merged."""
    asked = _parser().parse_args(arguments)
    try:
        head, rows = merged(asked.files)
    except KernelError as error:
        print(f"merge: {error}", file=sys.stderr)
        return 2
    _, write = SUITES[head["suite"]]
    write(asked.out, head, rows)
    print(f"{len(rows)} rows of {len(head[RUNS])} runs", file=sys.stderr)
    return 0


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="benchmarks.merge",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        "files", nargs="+", type=Path, help="result files of races, the earliest first"
    )
    made.add_argument("--out", required=True, type=Path, help="the merged file")
    return made


if __name__ == "__main__":
    sys.exit(main())
