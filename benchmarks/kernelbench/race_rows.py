"""Summarizes the rows of a race over KernelBench: how many are correct, and how fast."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.results import over, save

Row = Mapping[str, Any]
OVER = ("eager", "compile", "reduce_overhead")


def write(file: Path, head: Mapping[str, Any], rows: Sequence[Row]) -> None:
    """Writes a result file atomically, with rows in the order of their problems."""
    ordered = sorted(rows, key=lambda r: (r["level"], r["number"]))
    save(file, {**head, "summary": summary(ordered), "rows": ordered})


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Summarizes the problems of each level, and all; then all that are not degenerate."""
    levels = sorted({r["level"] for r in rows})
    groups = {f"level {n}": [r for r in rows if r["level"] == n] for n in levels}
    groups["all"] = list(rows)
    groups["not degenerate"] = [r for r in rows if not r["degenerate"]]
    return {name: _summed(group) for name, group in groups.items()}


def _summed(rows: Sequence[Row]) -> dict[str, Any]:
    right = [r for r in rows if r["correct"]]
    found = [r["searched"] for r in right if "searched" in r]
    after = {
        "searched": len(found),
        "correct_after_search": sum(f["correct"] for f in found),
        "after_search": over([f["speedup"] for f in found if f["correct"]]),
    }
    return (after if found else {}) | {
        "problems": len(rows),
        "correct": len(right),
        "suite_passed": sum(bool(r.get("suite_passed")) for r in rows),
        "own_kernels_only": sum(r.get("own_kernels_only") is True for r in rows),
        "failed_at": dict(Counter(r.get("stage", "check") for r in rows if not r["correct"])),
        "over": {name: _over(right, name) for name in OVER} | {"fastest": _over(right, "")},
    }


def _over(rows: Sequence[Row], name: str) -> dict[str, Any] | None:
    """Summarizes speed-ups over a baseline, of the correct rows that were raced. Without a name,
    over the fastest.

    fast_1: the share of rows that are faster.
    """
    found = [r["speedups"].get(name) if name else r["speedup"] for r in rows if r.get("us")]
    return over([f for f in found if f])
