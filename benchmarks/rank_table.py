"""The result file of a ranking: rows, and how well each estimate orders the measured times.

Rank correlations of one kernel's schedules are Spearman's rho. Over all kernels there are two:
`rho_mean`, the mean of the kernels' rhos, and `rho_pooled`, of all rows together. For the latter,
each time is replaced by its logarithm over the geometric mean of its kernel's times, so the
kernels' different sizes do not count. The regret is the measured time of the schedule with the
smallest estimate over the smallest measured time; for all kernels, the geometric mean.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.rank import geometric_mean, regret, relative, spearman
from benchmarks.results import save

Row = dict[str, Any]
# The model with the build's figures, the model without them, the machine-independent estimate.
GUESSES = ("modelled", "guessed", "estimated")


def read(file: Path) -> list[Row]:
    """Returns the rows of a result file. Empty if there is no file."""
    return json.loads(file.read_text(encoding="utf-8"))["rows"] if file.is_file() else []


def write(file: Path, head: Mapping[str, Any], rows: Sequence[Row]) -> None:
    """Writes a result file atomically."""
    table = {**head, "summary": summary(rows), "rows": list(rows)}
    save(file, table)


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Summarizes rows by kernel and over all.

    It counts the timed rows and has rho and regret of each estimate. `random` is the geometric mean
    regret of a random choice; `failed` has the reasons. Rows of several backends are ranked
    together, as in a race, and each backend alone in `backends`.
    """
    names = dict.fromkeys(row["backend"] for row in rows)
    if len(names) < 2:
        return _summary(rows)
    each = {name: _summary([r for r in rows if r["backend"] == name]) for name in names}
    return {**_summary(rows), "backends": each}


def _summary(rows: Sequence[Row]) -> dict[str, Any]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["kernel"], []).append(row)
    kernels = {name: _of_kernel(group) for name, group in groups.items()}
    timed = {name: _timed(group) for name, group in groups.items() if len(_timed(group)) > 1}
    return {
        "kernels": kernels,
        "overall": _overall({n: kernels[n] for n in timed}, list(timed.values()), rows),
    }


def _of_kernel(group: Sequence[Row]) -> dict[str, Any]:
    good = _timed(group)
    true = [r["measured_us"] for r in good]
    found: dict[str, Any] = {
        "timed": len(good),
        "failed": [
            {"schedule": r["schedule"], "reason": r["reason"]}
            for r in group
            if r["correct"] is False
        ],
    }
    if not good:
        return found
    best = min(good, key=lambda r: r["measured_us"])
    found |= {"best_us": min(true), "best_schedule": best["schedule"]}
    found["random"] = geometric_mean([us / min(true) for us in true])
    for guess in GUESSES:
        guessed = [r[f"{guess}_us"] for r in good]
        found[guess] = {"rho": spearman(guessed, true), "regret": regret(guessed, true)}
    return found


def _overall(
    kernels: Mapping[str, Any], groups: list[list[Row]], rows: Sequence[Row]
) -> dict[str, Any]:
    made: dict[str, Any] = {
        "timed": sum(len(g) for g in groups),
        "failed": sum(r["correct"] is False for r in rows),
        "random": geometric_mean([k["random"] for k in kernels.values()]),
    }
    true = [t for g in groups for t in relative([r["measured_us"] for r in g])]
    for guess in GUESSES:
        guessed = [t for g in groups for t in relative([r[f"{guess}_us"] for r in g])]
        rhos = [k[guess]["rho"] for k in kernels.values() if k[guess]["rho"] is not None]
        made[guess] = {
            "rho_mean": sum(rhos) / len(rhos) if rhos else None,
            "rho_pooled": spearman(guessed, true),
            "regret": geometric_mean([k[guess]["regret"] for k in kernels.values()]),
        }
    return made


def _timed(group: Sequence[Row]) -> list[Row]:
    return [r for r in group if r["correct"] and r["measured_us"]]
