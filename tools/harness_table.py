"""The tables of the verdicts of KernelBench's own harness: levels, problems, and what failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tools.markdown import cut, line, runs_of

Row = Mapping[str, Any]
_MODES = {"as_is": "as is", "tf32_off": "TF32 off"}
_LEVELS = ("problems", "flags", "judged", "correct", "geometric mean", "least", "largest", "faster")
_ROWS = (
    "level",
    "problem",
    "kernels",
    "ours",
    "reference",
    "speed-up",
    *("TF32 off: " + n for n in ("ours", "reference", "speed-up")),
)


def harness(result: Mapping[str, Any]) -> list[str]:
    """Returns the origin of the file, the levels, the problems and the failures."""
    rows = result["rows"]
    parts = (_origin(result), _levels(result["summary"]), _problems(rows), _failures(rows))
    return [p for p in parts if p]


def _origin(result: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    return (
        f"`{result['command']}`, {result['date']}, {result['machine']}, driver {result['driver']}, {versions}; "
        f"KernelBench at {result['harness']}.{runs_of(result)} Verdicts and times, in ms, are the harness's own."
    )


def _levels(summary: Mapping[str, Any]) -> str:
    lines = [line(_LEVELS), line(["---", "---"] + ["---:"] * (len(_LEVELS) - 2))]
    for name, found in summary.items():
        for mode, words in _MODES.items():
            of = found[mode]
            over = of["speedup"] or {}
            faster = f"{cut(100 * over['fast_1'], 0)}%" if over else "-"
            times = (cut(over.get(n)) for n in ("geometric_mean", "min", "max"))
            counts = (str(of["judged"]), str(of["correct"]))
            lines.append(line([f"{name}: {found['problems']}", words, *counts, *times, faster]))
    return "\n".join(lines)


def _problems(rows: Sequence[Row]) -> str:
    lines = [line(_ROWS), line(["---:", "---"] + ["---:"] * (len(_ROWS) - 2))]
    for row in rows:
        found = [cell for mode in _MODES for cell in _times(row.get(mode, {}))]
        kernels = str(row.get("kernels", "-"))
        lines.append(line([str(row["level"]), row["problem"], kernels, *found]))
    return "\n".join(lines)


def _times(verdict: Mapping[str, Any]) -> tuple[str, str, str]:
    """Returns our mean time, that of the reference, and their quotient. Each time has its smallest
    and largest. The first is `wrong` if the harness rejects the result."""
    if not verdict:
        return "-", "-", "-"
    if not verdict["correctness"]:
        return "wrong", "-", "-"
    ours, theirs = verdict["runtime"], verdict["ref_runtime"]
    spread = (_spread(verdict.get(side)) for side in ("times", "ref_times"))
    said = [f"{mean:.4g}{more}" for mean, more in zip((ours, theirs), spread, strict=True)]
    return said[0], said[1], cut(theirs / ours)


def _spread(times: Mapping[str, float] | None) -> str:
    return f" ({times['min']:.4g} to {times['max']:.4g})" if times else ""


def _failures(rows: Sequence[Row]) -> str:
    lines = []
    for row in rows:
        name = f"- level {row['level']} `{row['problem']}`"
        if "reason" in row:
            lines.append(f"{name}: {row['reason']}")
        for mode, words in _MODES.items():
            if not (verdict := row.get(mode, {"correctness": True}))["correctness"]:
                lines.append(f"{name}, {words}: {verdict.get('why', 'no reason is given')}")
    return "\n".join(lines)
