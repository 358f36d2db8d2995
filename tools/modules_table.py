"""The tables of the benchmark of modules: the summary, each module, and what failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tools.markdown import cut, line, runs_of

Row = Mapping[str, Any]
_MODES = ("eager", "compile", "max_autotune", "reduce_overhead")
_HEAD = (
    "module",
    "from",
    "dtype",
    "steps",
    "us",
    *(mode.replace("_", "-") for mode in _MODES),
    "speed-up",
    "searched, us",
    "speed-up",
    "error",
    "its error",
)
_WORDS = 3  # The first columns, which contain text.


def modules(result: Mapping[str, Any]) -> list[str]:
    """Returns the origin of the file, the modules, the failures and the summary."""
    rows = result["rows"]
    parts = (_origin(result), _rows(rows), _failures(rows), _summary(result["summary"]))
    return [p for p in parts if p]


def _origin(result: Mapping[str, Any]) -> str:
    versions = "".join(f", {n} {number}" for n, number in result.get("versions", {}).items())
    driver = f", driver {result['driver']}" if "driver" in result else ""
    return f"`{result['command']}`, {result['date']}, {result['machine']}{driver}{versions}.{runs_of(result)}"


def _rows(rows: Sequence[Row]) -> str:
    right = [r for r in rows if r["correct"]]
    if not right:
        return ""
    lines = [line(_HEAD), line(["---"] * _WORDS + ["---:"] * (len(_HEAD) - _WORDS))]
    for row in right:
        after = row.get("searched", {})
        found = after if after.get("correct") else {}
        lines.append(
            line(
                [
                    f"`{row['module']}`",
                    row["package"],
                    row["dtype"],
                    str(row["steps"]),
                    _us(row["us"]),
                    *(_us(row["baselines_us"].get(mode)) for mode in _MODES),
                    cut(row["speedup"]),
                    _us(found.get("us")),
                    cut(found.get("speedup")),
                    *(f"{row[name]:.1e}" for name in ("rel_err", "reference_rel_err")),
                ]
            )
        )
    return "\n".join(lines)


def _us(us: float | None) -> str:
    return "-" if us is None else f"{us:.1f}"


def _failures(rows: Sequence[Row]) -> str:
    lines = []
    for row in rows:
        if "not_run" in row:
            lines.append(f"- `{row['module']}` did not run: {row['not_run']}.")
        elif not row["correct"]:
            lines.append(f"- `{row['module']}` failed ({row.get('stage')}): {row.get('reason')}")
        elif not row.get("searched", {}).get("correct", True):
            why = row["searched"].get("reason")
            lines.append(f"- `{row['module']}` after a search failed: {why}")
    return "\n".join(lines)


def _summary(found: Mapping[str, Any]) -> str:
    text = f"{found['correct']} of {found['modules']} are correct."
    for name, words in (("before_search", "before"), ("after_search", "after")):
        if over := found.get(name):
            text += (
                f" Over the fastest {words} a search: geometric mean {cut(over['geometric_mean'])} of "
                f"{over['raced']}, from {cut(over['min'])} to {cut(over['max'])}."
            )
    return text
