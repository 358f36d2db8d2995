"""The rows of the benchmark, and their summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor
from pathlib import Path
from typing import Any

from benchmarks.modules.catalogue import ENTRIES
from benchmarks.results import over, save

Row = dict[str, Any]


def write(file: Path, head: Mapping[str, Any], rows: Sequence[Row]) -> None:
    """Writes a result file atomically, with rows in the order of the modules."""
    order = list(ENTRIES)
    ordered = sorted(rows, key=lambda r: order.index(r["module"]))
    save(file, {**head, "summary": summary(ordered), "rows": ordered})


def put(rows: list[Row], row: Row) -> None:
    """Replaces the row of the same module, or appends the row."""
    rows[:] = [r for r in rows if r["module"] != row["module"]]
    rows.append(row)


def done(row: Row | None, baselines: Sequence[str]) -> bool:
    """Whether a row has everything that is asked for, except a search."""
    if row is None or "not_run" in row:
        return False
    if not row["correct"]:
        return True
    raced = {*row["baselines_us"], *row["failures"]}
    return raced >= set(baselines)


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Summarizes all modules, before a search and after it."""
    right = [r for r in rows if r["correct"]]
    found = [r["searched"] for r in right if "searched" in r]
    fields = {
        "modules": len(ENTRIES),
        "run": sum("not_run" not in r for r in rows),
        "correct": len(right),
        "own_kernels_only": sum(r.get("own_kernels_only") is True for r in rows),
        "before_search": over([r["speedup"] for r in right]),
        "over": {
            name: over([r["speedups"][name] for r in right if name in r["speedups"]])
            for name in dict.fromkeys(n for r in right for n in r["speedups"])
        },
    }
    if found:
        fields["searched"] = len(found)
        fields["correct_after_search"] = sum(f["correct"] for f in found)
        fields["after_search"] = over([f["speedup"] for f in found if f["correct"]])
    return fields


def line(row: Row) -> str:
    """Formats a row as a progress line."""
    if "not_run" in row:
        return f"{row['module']}: not run: {row['not_run']}"
    if not row["correct"]:
        return f"{row['module']}: FAILED at {row.get('stage')}: {str(row.get('reason'))[:300]}"
    times = ", ".join(f"{n} {s:.2f}" for n, s in row["speedups"].items())
    after = ""
    if "searched" in row:
        found = row["searched"]
        after = (
            f"; searched: {found['us']:.1f} us, {found['speedup']:.2f}"
            if found["correct"]
            else (f"; searched: WRONG: {found.get('reason')}")
        )
    return f"{row['module']}: {row['us']:.1f} us by {row['steps']} steps; over {times}{after}"


def words(found: Mapping[str, Any]) -> str:
    """Formats a summary in a few lines."""
    lines = [f"{found['correct']} of {found['modules']} modules correct, {found['run']} run"]
    for name in ("before_search", "after_search"):
        if ratios := found.get(name):
            lines.append(
                f"{name.replace('_', ' ')}, over the fastest: geometric mean "
                f"{_cut(ratios['geometric_mean'])} of {ratios['raced']}, from {_cut(ratios['min'])} to "
                f"{_cut(ratios['max'])}; faster in {100 * ratios['fast_1']:.0f}%"
            )
    return "\n".join(lines)


def _cut(ratio: float) -> str:
    """Formats a ratio with two digits after the point, truncated."""
    return f"{floor(ratio * 100 + 1e-9) / 100:.2f}"
