"""The tables of a coverage file: how many problems of a benchmark are correct, and what failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tools.markdown import line

_MOST = 160  # Limit of a reason, in characters.
_HEAD = (
    "problems",
    "count",
    "correct",
    "without degenerate ones",
    "failed at",
    "kernels, median",
    "import, s, median",
    "schedule, ms a kernel, median",
    "lowering, ms a kernel, median",
)


def coverage(result: Mapping[str, Any]) -> list[str]:
    """Returns the origin of the file, the levels and the failures."""
    return [p for p in (_origin(result), _levels(result["summary"]), failures(result["rows"])) if p]


def _origin(result: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    how = ", ".join(sorted({row["correct_by"] for row in result["rows"]}))
    sizes = result["reduced"]
    at = "at their own sizes"
    if sizes:
        at = (
            f"at reduced sizes (inputs and parameters of up to {sizes['elements']:,} elements, "
            f"about {sizes['work']:,} operations)"
        )
    return (
        f"`{result['command']}`, {result['date']}, {result['machine']}, by the {how}, {at}; "
        f"{versions}."
    )


def _levels(summary: Mapping[str, Any]) -> str:
    lines = [line(_HEAD), line(["---"] + ["---:"] * (len(_HEAD) - 1))]
    for name, found in summary.items():
        failed = ", ".join(f"{stage} {n}" for stage, n in found["failed_at"].items())
        lines.append(
            line(
                [
                    name,
                    str(found["problems"]),
                    str(found["correct"]),
                    f"{found['correct_not_degenerate']} of {found['not_degenerate']}",
                    failed or "-",
                    _number(found["kernels"], "g"),
                    _number(found["import_s"], ".1f"),
                    _number(found["schedule_ms_per_kernel"], ".0f"),
                    _number(found["lower_ms_per_kernel"], ".1f"),
                ]
            )
        )
    return "\n".join(lines)


def failures(rows: Sequence[Mapping[str, Any]]) -> str:
    """Lists what is not correct, with the stage and the reason. Empty if all is correct."""
    lines = [
        f"- level {r['level']}, {r['problem']}, {r.get('stage', 'check')}: {_short(r['reason'])}"
        for r in rows
        if not r["correct"]
    ]
    return "\n".join(["Failures:", "", *lines]) if lines else ""


def _short(reason: str) -> str:
    words = " ".join(reason.split())
    return words if len(words) <= _MOST else f"{words[:_MOST]} ..."


def _number(value: float | None, how: str) -> str:
    return "-" if value is None else format(value, how)
