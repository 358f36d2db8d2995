"""Compiles ATen's operators to kernels of a target, and writes a result file.

Each operator and dtype is imported, lowered, built, run on PyTorch's samples and compared with
PyTorch, in its own process. Each row is written when it is complete. Existing rows are kept, so an
interrupted run can be continued.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence

from benchmarks.aten.attempt import OperatorAttempt, attempt
from benchmarks.aten.rows import key, write
from benchmarks.aten.samples import NAMES, dtypes
from benchmarks.attempts import Attempts, Row, head, noted, options, serving, suit
from frontends.dtypes import NAMES as DTYPES
from ir.errors import KernelError

EXAMPLES = """
examples:
  python3 -m benchmarks.aten --target=npu --out=r.json --samples=2 --dtypes=f32
  python3 -m benchmarks.aten --target=mi300 --out=r.json --only=add,mul --again
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns exit code 2 for wrong usage, 1 if an operator failed."""
    asked = _parser().parse_args(arguments)
    try:
        chosen = list(wanted(asked.only, asked.dtypes))
        machine, backend = serving(asked.target, asked.backend)
        available = backend.available(machine)
        if not available["correct_by"]:
            raise KernelError(f"nothing runs here: {available['why']}")
    except KernelError as error:
        print(f"aten: {error}", file=sys.stderr)
        return 2
    suit(asked, available["correct_by"])
    known = {"target": machine.name, "correct_by": available["correct_by"]}
    made = head(
        asked, f"benchmarks.aten --target={asked.target} --out=FILE --samples={asked.samples}"
    )
    attempts = Attempts(asked, key, lambda rows: write(asked.out, made, rows), line)
    attempts.run({pair: pair for pair in chosen}, lambda pair: _tried(asked, known, *pair))
    return int(any(r["verdict"] == "fail" for r in attempts.rows))


def wanted(only: str, dtypes_: str) -> Iterator[tuple[str, str]]:
    """Yields operators and dtypes, f32 of all operators first.

    Both are names separated by commas; an empty text means all. Raises KernelError for an unknown
    name.
    """
    names, kinds = _chosen(only, NAMES), _chosen(dtypes_, tuple(DTYPES.values()))
    pairs = [(n, name, DTYPES[d]) for name in names for n, d in enumerate(dtypes(name))]
    return ((name, d) for _, name, d in sorted(pairs, key=lambda p: p[0]) if d in kinds)


def _chosen(text: str, there: Sequence[str]) -> Sequence[str]:
    words = [w for w in text.split(",") if w]
    if unknown := [w for w in words if w not in there]:
        raise KernelError(f"`{unknown[0]}` is not there", allowed=", ".join(there))
    return [n for n in there if n in words] if words else there


def _tried(asked: argparse.Namespace, known: Row, name: str, dtype: str) -> Row:
    begun = {"samples": 0, "passed": 0, "verdict": "fail"}
    began = time.monotonic()
    row = noted(
        attempt,
        lambda notes: OperatorAttempt(
            name, dtype, asked.target, asked.samples, notes, asked.backend
        ),
        begun,
        asked,
    )
    if at := row.pop("at", ""):
        row["reason"] = f"{at}: {row['reason']}"
    seconds = round(time.monotonic() - began, 1)
    return {"operator": name, "dtype": dtype, **known, **row, "seconds": seconds}


def line(row: Row) -> str:
    """Formats a row as a progress line."""
    count = f"{row['passed']} of {row['samples']}"
    what = f"{row['operator']} {row['dtype']}: {row['verdict']}, {count}, {row['seconds']} s"
    return f"{what}  {row['reason'][:300]}"


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="aten",
        description=__doc__.splitlines()[0],
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        "--only", default="", help="names of operators, separated by commas, such as add,mul"
    )
    made.add_argument(
        "--dtypes",
        default="",
        help="any of f32, bf16, f16, i64, b8, separated by commas (default: all)",
    )
    made.add_argument("--samples", type=int, default=3, help="samples of an operator and dtype")
    options(made, "operator", seconds=60, gigabytes=8)
    return made


if __name__ == "__main__":
    sys.exit(main())
