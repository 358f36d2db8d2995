"""Rows of a result file of operators, and their summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.results import save

Row = dict[str, Any]
VERDICTS = ("pass", "fail", "not expressible")


def write(file: Path, head: Mapping[str, Any], rows: Sequence[Row]) -> None:
    """Writes a result file atomically, with rows sorted by operator."""
    ordered = sorted(rows, key=lambda r: (r["operator"].strip("_"), r["operator"]))
    save(file, {**head, "summary": summary(ordered), "rows": ordered})


def key(row: Mapping[str, Any]) -> tuple[str, str]:
    """Returns the key that identifies a row."""
    return row["operator"], row["dtype"]


def summary(rows: Sequence[Row]) -> Row:
    """Counts the rows with each verdict, in total and by dtype.

    It also counts the operators that pass with all dtypes that were tried.
    """
    groups = {d: [r for r in rows if r["dtype"] == d] for d in sorted({r["dtype"] for r in rows})}
    counted = {name: _counted(group) for name, group in {"all": rows, **groups}.items()}
    operators = {r["operator"] for r in rows}
    wrong = {r["operator"] for r in rows if r["verdict"] != "pass"}
    return {**counted, "operators": len(operators), "operators_passed": len(operators - wrong)}


def _counted(rows: Sequence[Row]) -> dict[str, int]:
    found = Counter(r["verdict"] for r in rows)
    return {"rows": len(rows), **{v: found[v] for v in VERDICTS if found[v]}}
