"""Rows of the ablation's result file, one per line. Each is written when it is complete."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.results import placeless, replace
from benchmarks.search.statistics import summary

Row = Mapping[str, Any]
KEY = ("kernel", "target", "configuration", "seed", "evaluations")


def key(row: Row) -> tuple[Any, ...]:
    """Returns the key that identifies a row."""
    return tuple(row[name] for name in KEY)


def read(file: Path) -> list[Row]:
    """Returns the rows of a file. Empty if there is none."""
    return json.loads(file.read_text(encoding="utf-8"))["rows"] if file.is_file() else []


def write(file: Path, head: Mapping[str, Any], rows: Sequence[Row]) -> None:
    """Writes a result file atomically, with rows sorted by key."""
    ordered = placeless(sorted(rows, key=key))
    parts = [f'"{name}": {json.dumps(value)}' for name, value in head.items()]
    parts.append(f'"summary": {json.dumps(summary(ordered), indent=1)}')
    lines = ",\n".join(json.dumps(row) for row in ordered)
    parts.append(f'"rows": [\n{lines}\n]')
    replace(file, "{" + ",\n".join(parts) + "}\n")
