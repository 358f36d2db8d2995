"""Result files: rows with their origin, written after each row, and their summary."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Any

Table = dict[str, Any]
# The folders of an absolute path, but not of a URL, a relative path or a quotient.
_FOLDERS = re.compile(r"(?<![\w.:/~)\]])/(?:[\w.+@-]+/)+")


def read(file: Path) -> Table:
    """Reads a result file. Returns an empty one if there is none."""
    if not file.is_file():
        return {"rows": []}
    return json.loads(file.read_text(encoding="utf-8"))


def write(file: Path, head: Mapping[str, Any], rows: Sequence[Table]) -> None:
    """Writes a result file atomically: its head, a summary and its rows."""
    save(file, {**head, "summary": summary(rows), "rows": list(rows)})


def save(file: Path, table: Table) -> None:
    """Writes a table as JSON atomically, without the folders of the machine."""
    replace(file, json.dumps(placeless(table), indent=1) + "\n")


def replace(file: Path, text: str) -> None:
    """Writes a text atomically."""
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_suffix(".part")
    beside.write_text(text, encoding="utf-8")
    beside.replace(file)


def placeless(value: Any) -> Any:
    """Returns a JSON value with every absolute path in its texts replaced by the file name.

    The folders of one machine mean nothing on another.
    """
    if isinstance(value, str):
        return _FOLDERS.sub("", value)
    if isinstance(value, Mapping):
        return {name: placeless(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [placeless(each) for each in value]
    return value


def row_key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Returns the key that identifies a row."""
    return row["kernel"], row["dtype"], tuple(sorted(row["shape"].items()))


def missing(row: Mapping[str, Any] | None, names: Iterable[str]) -> list[str]:
    """Returns the baselines that a row has not raced yet. Those that failed have been raced."""
    raced = {} if row is None else {**row.get("baselines_us", {}), **row.get("failures", {})}
    return [name for name in names if name not in raced]


def put(rows: list[Table], row: Table) -> None:
    """Replaces the row with the same key, or appends the row."""
    for n, other in enumerate(rows):
        if row_key(other) == row_key(row):
            rows[n] = row
            return
    rows.append(row)


def settle(row: Table) -> None:
    """Sets the fastest baseline, the speed-up over it, and the share of the roofline if that is
    known."""
    times = {name: us for name, us in row["baselines_us"].items() if us}
    row["fastest"] = min(times, key=times.__getitem__) if times else None
    good = row["correct"] and row.get("us")
    row["speedup"] = times[row["fastest"]] / row["us"] if good and times else None
    known = good and row["roofline_us"] is not None
    row["roofline_share"] = row["roofline_us"] / row["us"] if known else None


def summary(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Summarizes speed-ups over the fastest baseline, of all rows and of each dtype's.

    A row that failed has no speed-up. It is counted, and counts as a loss in `fast_1`.
    """
    groups = {"all": list(rows)}
    for row in rows:
        groups.setdefault(row["dtype"], []).append(row)
    return {name: _summed(group) for name, group in groups.items()}


def _summed(rows: Sequence[Mapping[str, Any]]) -> Table:
    ratios = [row["speedup"] for row in rows if row.get("speedup")]
    shares = [row["roofline_share"] for row in rows if row.get("roofline_share")]
    return {
        "rows": len(rows),
        "raced": len(ratios),
        "failed": sum(not row["correct"] for row in rows),
        "faster": sum(r > 1 for r in ratios),
        "fast_1": sum(r > 1 for r in ratios) / len(rows) if rows else 0.0,
        "geometric_mean": _geometric(ratios),
        "median": median(ratios) if ratios else None,
        "min": min(ratios, default=None),
        "max": max(ratios, default=None),
        "roofline_share_geometric_mean": _geometric(shares),
    }


def over(ratios: Sequence[float]) -> Table | None:
    """Summarizes speed-ups over one baseline. None if there are none. fast_1: the share of rows
    that are faster."""
    if not ratios:
        return None
    return {
        "raced": len(ratios),
        "geometric_mean": _geometric(ratios),
        "median": median(ratios),
        "min": min(ratios),
        "max": max(ratios),
        "fast_1": sum(r > 1 for r in ratios) / len(ratios),
    }


def _geometric(ratios: Sequence[float]) -> float | None:
    return exp(sum(map(log, ratios)) / len(ratios)) if ratios else None
