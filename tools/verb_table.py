"""The table of the effect of single decisions on a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from tools.markdown import cut, line, sizes_of


def verbs(result: Mapping[str, Any]) -> list[str]:
    """Returns the origin of the file and its rows. Ratios are relative to the first variant of a
    topic."""
    head = ("decisions", "kernel", "variant", "us", "first / this", "registers", "shared memory")
    lines = [line(head), line(["---", "---", "---", *["---:"] * (len(head) - 3)])]
    for topic, rows in groupby(result["rows"], key=lambda row: row["topic"]):
        first, *others = rows
        for row in (first, *others):
            sizes = sizes_of(row["sizes"])
            known = row["us"] is not None and first["us"] is not None
            figures = row.get("figures", {})
            lines.append(
                line(
                    [
                        topic if row is first else "",
                        f"{row['kernel']} {sizes}" if row is first else "",
                        row["variant"],
                        row["reason"] if row["us"] is None else f"{row['us']:.1f}",
                        cut(first["us"] / row["us"]) if known else "-",
                        f"{figures.get('registers', 0):.0f}",
                        f"{figures.get('shared_bytes', 0):.0f}",
                    ]
                )
            )
    return [_origin(result), "\n".join(lines)]


def _origin(result: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in result.get("versions", {}).items())
    driver = f", driver {result['driver']}, {versions}" if versions else ""
    return (
        f"`{result['command']}`, {result['date']}, {result['machine']}{driver}, {result['toolchain']}. "
        f"Correct by {result['correct_by']} at all check sizes, microseconds "
        f"{result['rows'][0]['time_kind']}."
    )
