"""Rows of a result file of problems, and their summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.results import save

Row = dict[str, Any]
FAILED_AT = ("scale", "read", "import", "schedule", "lower", "build", "run", "check")


def write(file: Path, head: Mapping[str, Any], rows: Sequence[Row]) -> None:
    """Writes a result file atomically, with rows in the order of their problems."""
    ordered = sorted(rows, key=lambda r: (r["level"], r["number"]))
    save(file, {**head, "summary": summary(ordered), "rows": ordered})


def key(row: Mapping[str, Any]) -> tuple[int, str]:
    """Returns the key that identifies a row."""
    return row["level"], row["problem"]


def put(rows: list[Row], row: Row) -> None:
    """Replaces the row of the same problem, or appends the row."""
    rows[:] = [r for r in rows if key(r) != key(row)]
    rows.append(row)


def summary(rows: Sequence[Row]) -> Row:
    """Summarizes the problems of each level, and all."""
    levels = sorted({r["level"] for r in rows})
    groups = {f"level {n}": [r for r in rows if r["level"] == n] for n in levels}
    return {name: _summed(group) for name, group in {**groups, "all": rows}.items()}


def _summed(rows: Sequence[Row]) -> Row:
    plain = [r for r in rows if not r["degenerate"]]
    failed = Counter(r["stage"] for r in rows if not r["correct"])
    return {
        "problems": len(rows),
        "correct": sum(r["correct"] for r in rows),
        "not_degenerate": len(plain),
        "correct_not_degenerate": sum(r["correct"] for r in plain),
        "failed_at": {stage: failed[stage] for stage in FAILED_AT if failed[stage]},
        "kernels": _middle(rows, lambda r: r["kernels"]),
        "import_s": _middle(rows, lambda r: r["import_s"]),
        "schedule_ms_per_kernel": _middle(rows, lambda r: 1000 * r["schedule_s"] / r["lowered"]),
        "lower_ms_per_kernel": _middle(rows, lambda r: 1000 * r["lower_s"] / r["lowered"]),
    }


def _middle(rows: Sequence[Row], of: Callable[[Row], float]) -> float | None:
    """Returns the median of a figure over the rows that were lowered."""
    known = [of(r) for r in rows if r.get("lowered") and "lower_s" in r]
    return median(known) if known else None
