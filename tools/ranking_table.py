"""The tables of a ranking file: how well each estimate orders the times that a device measured."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tools.markdown import cut, line, over

GUESSES = ("modelled", "guessed", "estimated")
_MOST = 160  # Limit of a reason, in characters.
_HEAD = (
    "kernel",
    "timed",
    "failed",
    "not timed",
    *(f"{g}: rho, regret" for g in GUESSES),
    "random: regret",
)


def ranking(result: Mapping[str, Any]) -> list[str]:
    """Returns the parts that follow the origin of the file: rows by kernel, all kernels, and the
    failures."""
    rows = result["rows"]
    parts = [_kernels(result["summary"], rows), _overall(result["summary"]["overall"], rows)]
    if failures := _failures(rows):
        parts.append(failures)
    return parts


def _kernels(summary: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [line(_HEAD), line(["---", *["---:"] * (len(_HEAD) - 1)])]
    for name, found in summary["kernels"].items():
        left = sum(r["correct"] is None for r in rows if r["kernel"] == name)
        pairs = (_pair(found.get(g)) for g in GUESSES)
        counts = (found["timed"], len(found["failed"]), left)
        lines.append(line([name, *map(str, counts), *pairs, cut(found.get("random"))]))
    return "\n".join(lines)


def _overall(found: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    head = ("all kernels", "rho, mean", "rho, pooled", "regret, geometric mean")
    old = sum("not_remodelled" in row for row in rows)
    counted = f"{found['timed']} schedules timed, {found['failed']} failed."
    if old:
        counted += f" {old} no longer lower: their models are as they were when measured."
    lines = [counted, "", line(head), line(["---", *["---:"] * 3])]
    for guess in GUESSES:
        of = found[guess]
        rhos = (cut(of[k]) for k in ("rho_mean", "rho_pooled"))
        lines.append(line([guess, *rhos, over(of["regret"])]))
    lines.append(line(["random", "-", "-", cut(found["random"])]))
    return "\n".join(lines)


def _failures(rows: Sequence[Mapping[str, Any]]) -> str:
    """Lists the failures by kernel. Reasons that differ only in numbers are merged."""
    groups: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row["correct"] is False:
            reason = short(row["reason"])
            groups.setdefault((row["kernel"], re.sub(r"\d+", "", reason)), []).append(reason)
    lines = [f"- {kernel}, {len(found)}: {found[0]}" for (kernel, _), found in groups.items()]
    return "\n".join(["Failures:", "", *lines]) if lines else ""


def short(reason: str) -> str:
    """Shortens a reason to one line: its origin and its last informative line."""
    lines = [x.strip(" ^") for x in reason.splitlines()]
    lines = [
        x
        for x in lines
        if x
        and "Failures have been detected" not in x
        and "for details" not in x
        and not x.startswith("Search for")
    ]
    first, last = lines[0], lines[-1]
    both = first if first == last or "CUDA" in first else f"{first.split(': at ')[0]}: {last}"
    both = re.sub(r"\s+\.\.\. .*", "", re.sub(r"/\S*/(\S+\.py)", r"\1", both))
    both = both if len(both) <= _MOST else both[:_MOST] + "..."
    return both.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def _pair(found: Mapping[str, Any] | None) -> str:
    return "-" if found is None else f"{cut(found['rho'])}, {over(found['regret'])}"
