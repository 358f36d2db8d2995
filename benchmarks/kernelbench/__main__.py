"""Compiles KernelBench's problems to kernels of a target, and writes a result file.

Each problem is scaled (with --reduced), imported, scheduled, lowered, built, run and compared with
PyTorch, in its own process. Each row is written when it is complete. Existing rows are kept, so an
interrupted run can be continued. This runs foreign code: the checkout's.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.attempts import Attempts, Row, head, noted, options, serving, suit
from benchmarks.kernelbench.attempt import ProblemAttempt, attempt
from benchmarks.kernelbench.problems import ProblemFile, entries
from benchmarks.kernelbench.rows import key, write
from frontends.kernelbench.scaled import ELEMENTS, WORK
from ir.errors import KernelError

EXAMPLES = """
examples:
  python3 -m benchmarks.kernelbench --problems=KernelBench/KernelBench --level=1 --level=2 \\
      --target=mi300 --out=r.json --reduced
  python3 -m benchmarks.kernelbench --problems=KernelBench/KernelBench --level=2 --target=npu \\
      --out=r.json --reduced --only=1,5-9 --again
  python3 -m benchmarks.kernelbench --problems=KernelBench/KernelBench --level=1 --target=mi300 \\
      --backend=hip --out=r.json --reduced
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns exit code 2 for wrong usage, 1 if a problem failed."""
    asked = _parser().parse_args(arguments)
    try:
        chosen = [e for n in asked.level for e in entries(asked.problems, n, asked.only)]
        machine, backend = serving(asked.target, asked.backend)
        available = backend.available(machine)
        if not available["correct_by"]:
            raise KernelError(f"nothing runs here: {available['why']}")
    except KernelError as error:
        print(f"kernelbench: {error}", file=sys.stderr)
        return 2
    suit(asked, available["correct_by"])
    known = {
        "kernel": None,
        "dtype": "f32",
        "target": machine.name,
        "backend": backend.manifest.name,
        "correct_by": available["correct_by"],
    }

    def save(rows: Sequence[Row]) -> None:
        write(asked.out, _head(asked, rows), rows)

    attempts = Attempts(asked, key, save, line)
    items = {(e.level, e.name): e for e in chosen}
    attempts.run(items, lambda entry: _tried(asked, known, entry))
    return int(any(not r["correct"] for r in attempts.rows))


def _tried(asked: argparse.Namespace, known: Row, entry: ProblemFile) -> Row:
    about = {
        "level": entry.level,
        "problem": entry.name,
        "number": entry.number,
        "degenerate": entry.degenerate,
    }
    begun = {"correct": False, "stage": "read"}
    return (
        known
        | about
        | noted(
            attempt,
            lambda notes: ProblemAttempt(
                entry.path, asked.target, asked.reduced, notes, asked.backend
            ),
            begun,
            asked,
        )
    )


def line(row: Row) -> str:
    """Formats a row as a progress line."""
    took = " ".join(f"{k}={row[k]:.1f}" for k in row if k.endswith("_s"))
    what = f"{row['problem']}: {row.get('kernels', '-')} kernels, {took}"
    if row["correct"]:
        return f"{what}, error {row['rel_err']:.1e}"
    return f"{what}: FAILED at {row['stage']}: {row['reason'][:300]}"


def _head(asked: argparse.Namespace, rows: Sequence[Row]) -> dict[str, Any]:
    levels = " ".join(f"--level={n}" for n in sorted({r["level"] for r in rows}))
    flag = " --reduced" if asked.reduced else ""
    command = f"benchmarks.kernelbench --problems=DIR {levels} --target={asked.target} --out=FILE"
    sizes = {"elements": ELEMENTS, "work": WORK} if asked.reduced else None
    return {**head(asked, f"{command}{flag}"), "reduced": sizes}


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="kernelbench",
        description=__doc__.splitlines()[0],
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--problems", required=True, type=Path, help="the folder with level1, ...")
    made.add_argument(
        "--level", required=True, type=int, action="append", help="a level; repeatable"
    )
    made.add_argument("--reduced", action="store_true", help="use sizes that can be simulated")
    made.add_argument("--only", default="", help="numbers of problems, such as 1,5-9")
    options(made, "problem", seconds=120, gigabytes=16)
    return made


if __name__ == "__main__":
    sys.exit(main())
