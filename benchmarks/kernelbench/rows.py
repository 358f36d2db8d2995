"""Rows of a result file of problems, and what they come to."""

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
    """Writes a result file whole, rows in the order of their problems; never half of it."""
    ordered = sorted(rows, key=lambda r: (r["level"], r["number"]))
    save(file, {**head, "summary": summary(ordered), "rows": ordered})


def key(row: Mapping[str, Any]) -> tuple[int, str]:
    """What makes a row the same row."""
    return row["level"], row["problem"]


def put(rows: list[Row], row: Row) -> None:
    """Puts a row in the place of the same problem's, else at the end."""
    rows[:] = [r for r in rows if key(r) != key(row)]
    rows.append(row)


def summary(rows: Sequence[Row]) -> Row:
    """What the problems of each level come to, and all."""
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
    """The median of a figure over the rows that got as far."""
    known = [of(r) for r in rows if r.get("lowered") and "lower_s" in r]
    return median(known) if known else None
