"""Merges result files of one suite into one, by stated rules.

Of each problem or module the row of the last file that has it counts, right or not, and whole: a mode that it lacks, as
that took too long, is not taken from an earlier row. The files are of one suite
and one kind of GPU, of the same sizes, and of the same versions of PyTorch, Triton and the driver: else their times
say nothing beside each other. The merged file lists the runs, and each row says which one it is of.

A run that only searched for what an earlier one raced adds its search to that row. The row stays of the earlier run, and its
search says which run it is of.
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
Put = Callable[[list[Row], Row], None]  # a row in the place of the same problem's or module's
Write = Callable[[Path, Mapping[str, Any], Sequence[Row]], None]  # a result file
SUITES: Mapping[str, tuple[Put, Write]] = {
    "kernelbench": (problems.put, race_rows.write),
    "kernelbench_harness": (problems.put, harness.write),
    "modules": (modules.put, modules.write),
}
ALIKE = ("suite", "sizes", "harness", "machine", "driver", "versions")  # what runs have in common
TOLD = ("command", "date", "clocks_mhz")  # what the merged file says of each run
RUNS, SEARCHED = "runs", "searched"
EXAMPLES = """
examples:
  python3 -m benchmarks.merge first.json second.json --out=merged.json
"""


def merged(files: Sequence[Path]) -> tuple[dict[str, Any], list[Row]]:
    """The head and the rows of several result files, the earliest first; KernelError for files that
    cannot be compared, or hold no rows. A merged file brings the runs that it lists."""
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
            # A run that went on with a merged file has rows of others, but not the list of their runs.
            here = {**row, "run": first + (row.get("run", 0) if RUNS in table else 0)}
            put(rows, _beside(here, rows))
    counted = [{**run, "rows": _of_run(rows, n)} for n, run in enumerate(runs)]
    command = "python3 -m benchmarks.merge RUN.json ... --out=FILE"
    last = max(str(run["date"]) for run in runs)
    return {"command": command, "date": last, **head, RUNS: counted}, rows


def _beside(row: Row, rows: Sequence[Row]) -> Row:
    """The row that counts, given the rows of earlier runs: the row itself, or the earlier row of the same race, with the new
    search if there is one."""
    same = next((r for r in rows if _raced(r) == _raced(row)), None)
    if same is None:
        return row
    search = row.get(SEARCHED)
    if search is None or _search(search) == _search(same.get(SEARCHED, {})):
        return same
    return {**same, SEARCHED: {"run": row["run"], **search}}


def _raced(row: Row) -> Row:
    """What a race says in a row."""
    return {n: v for n, v in row.items() if n not in ("run", SEARCHED)}


def _search(found: Mapping[str, Any]) -> Row:
    return {n: v for n, v in found.items() if n != "run"}


def _of_run(rows: Sequence[Row], run: int) -> int:
    """How many rows, or searches of rows, are of a run."""
    return sum(run in (r["run"], r.get(SEARCHED, {}).get("run")) for r in rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; exit code 2 for files that cannot be merged, and then nothing is written."""
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
    made.add_argument("files", nargs="+", type=Path, help="of races, the earliest first")
    made.add_argument("--out", required=True, type=Path, help="the merged file")
    return made


if __name__ == "__main__":
    sys.exit(main())
