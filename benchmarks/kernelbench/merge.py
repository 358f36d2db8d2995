"""Merges result files of races over KernelBench into one, by stated rules.

Of each problem the row of the last file that has it counts, right or not. The files are of one kind of GPU, of
the same sizes, and of the same versions of PyTorch, Triton and the driver: else their times say nothing beside each
other. The merged file lists the runs, and each row says which one it is of.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.kernelbench.race_rows import write
from benchmarks.kernelbench.rows import Row, put
from benchmarks.results import read
from ir.errors import KernelError

ALIKE = ("suite", "sizes", "machine", "driver", "versions")  # what runs have in common
TOLD = ("command", "date", "clocks_mhz")  # what the merged file says of each run
RUNS = "runs"
EXAMPLES = """
examples:
  python3 -m benchmarks.kernelbench.merge first.json second.json --out=merged.json
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
        head = head or {name: table.get(name) for name in ALIKE}
        for name in ALIKE:
            if table.get(name) != head[name]:
                raise KernelError(
                    f"its `{name}` is {table.get(name)!r}, that of the first file {head[name]!r}",
                    where=str(file),
                    hint="merge runs of one kind of GPU with the same versions",
                )
        first = len(runs)
        runs += table.get(RUNS) or [{name: table.get(name) for name in TOLD}]
        for row in table["rows"]:
            put(rows, {**row, "run": first + row.get("run", 0)})
    counted = [{**run, "rows": sum(r["run"] == n for r in rows)} for n, run in enumerate(runs)]
    command = "python3 -m benchmarks.kernelbench.merge RUN.json ... --out=FILE"
    last = max(str(run["date"]) for run in runs)
    return {"command": command, "date": last, **head, RUNS: counted}, rows


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; exit code 2 for files that cannot be merged, and then nothing is written."""
    asked = _parser().parse_args(arguments)
    try:
        head, rows = merged(asked.files)
    except KernelError as error:
        print(f"merge: {error}", file=sys.stderr)
        return 2
    write(asked.out, head, rows)
    print(f"{len(rows)} rows of {len(head[RUNS])} runs", file=sys.stderr)
    return 0


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="benchmarks.kernelbench.merge",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("files", nargs="+", type=Path, help="of races, the earliest first")
    made.add_argument("--out", required=True, type=Path, help="the merged file")
    return made


if __name__ == "__main__":
    sys.exit(main())
