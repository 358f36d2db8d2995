"""The comparison: the same searches with and without a model, with the same number of evaluations.

A block is a kernel with a seed. It counts if both of its searches found something correct.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import geometric_mean
from typing import Any

Row = Mapping[str, Any]
KEY = ("kernel", "target", "seed", "evaluations", "model")
NONE = ""  # The model of a search without one.
TIE = 0.01  # If the difference is smaller than this share, neither side is faster.


def key(row: Row) -> tuple[Any, ...]:
    """Returns the key that identifies a row."""
    return tuple(row[name] for name in KEY)


def row_of(run: Mapping[str, Any], seed: int, evaluations: int, model: str) -> dict[str, Any]:
    """Returns the row of a search. run: the report of `evolve --json`. evaluations: their limit."""
    models = run.get("models", {})
    return {
        "kernel": run["kernel"],
        "target": run["target"],
        "seed": seed,
        "evaluations": evaluations,
        "model": model,
        "run": run["run"],
        "made": run["evaluations"],
        "first_us": run["first_us"],
        "us": run["best_us"],
        "roofline_us": run["roofline_us"],
        "correct_by": run["correct_by"],
        "time_kind": run["time_kind"],
        "stopped_because": run["stopped_because"],
        **{name: models.get(name) for name in ("tokens", "cost", "answers", "refused", "steps")},
    }


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Summarizes for each model the blocks that it and the search without one have.

    It has the geometric mean of the time without over the time with, by kernel and in total, and in
    how many blocks either was faster.
    """
    alone = {_block(row): row for row in rows if row["model"] == NONE}
    found = {}
    for model in sorted({row["model"] for row in rows} - {NONE}):
        pairs = [
            (alone[_block(row)], row)
            for row in rows
            if row["model"] == model and _block(row) in alone
        ]
        good = [(a["kernel"], a["us"] / b["us"]) for a, b in pairs if a["us"] and b["us"]]
        gains = [gain for _, gain in good]
        by_kernel = {
            kernel: round(geometric_mean([g for k, g in good if k == kernel]), 4)
            for kernel in sorted({kernel for kernel, _ in good})
        }
        found[model] = {
            "blocks": len(pairs),
            "without_a_time": len(pairs) - len(good),
            "without_an_answer": sum(not row["answers"] for _, row in pairs),
            "faster": sum(gain > 1 + TIE for gain in gains),
            "slower": sum(gain < 1 / (1 + TIE) for gain in gains),
            "gain": round(geometric_mean(gains), 4) if gains else None,
            "by_kernel": by_kernel,
        }
    return found


def _block(row: Row) -> tuple[Any, ...]:
    return row["kernel"], row["target"], row["seed"], row["evaluations"]


def words(found: Mapping[str, Any]) -> str:
    """Formats a summary for people."""
    lines = []
    for model, table in found.items():
        gain = "no block has both times" if table["gain"] is None else f"{table['gain']:.3f}x"
        lines.append(
            f"{model}: {gain} over the search without it, at as many evaluations; faster in "
            f"{table['faster']} and slower in {table['slower']} of {table['blocks']} blocks"
        )
        if table["without_an_answer"]:
            lines.append(f"  in {table['without_an_answer']} blocks the model gave no answer")
        lines += (f"  {kernel}: {gain:.3f}x" for kernel, gain in table["by_kernel"].items())
    return "\n".join(lines) or "no model has been compared"
