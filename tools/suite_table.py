"""The tables of a suite that was raced problem by problem: levels, problems, and what failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tools.coverage_table import failures
from tools.markdown import cut, line, runs_of

_LEVELS = (
    "problems",
    "count",
    "correct",
    "by the suite's check",
    "own kernels only",
    "failed at",
    "over eager",
    "over compile",
    "over the fastest",
    "faster than eager",
    "than the fastest",
)
_MODES = {  # of PyTorch, by their names in rows: those that some row has are columns
    "eager": "eager",
    "compile": "compile",
    "max_autotune": "max-autotune",
    "reduce_overhead": "reduce-overhead",
}
_RATIOS = ("over eager", "over compile", "over the fastest")


def suite(result: Mapping[str, Any]) -> list[str]:
    """Returns the origin of the file, the levels, the rows and the failures."""
    rows = result["rows"]
    parts = (_origin(result), _levels(result["summary"]), _problems(rows), failures(rows))
    return [p for p in parts if p]


def _origin(result: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    return (
        f"`{result['command']}`, {result['date']}, {result['machine']}, driver "
        f"{result['driver']}, {versions}; sizes: {result['sizes']}.{runs_of(result)}"
    )


def _levels(summary: Mapping[str, Any]) -> str:
    lines = [line(_LEVELS), line(["---"] + ["---:"] * (len(_LEVELS) - 1))]
    for name, found in summary.items():
        failed = ", ".join(f"{stage} {n}" for stage, n in found["failed_at"].items())
        over = found["over"]
        lines.append(
            line(
                [
                    name,
                    str(found["problems"]),
                    str(found["correct"]),
                    str(found["suite_passed"]),
                    str(found["own_kernels_only"]),
                    failed or "-",
                    *(_mean(over[n]) for n in ("eager", "compile", "fastest")),
                    *(_share(over[n]) for n in ("eager", "fastest")),
                ]
            )
        )
    return "\n".join(lines)


def _mean(found: Mapping[str, Any] | None) -> str:
    return cut(found["geometric_mean"]) if found else "-"


def _share(found: Mapping[str, Any] | None) -> str:
    return f"{100 * found['fast_1']:.0f}%" if found else "-"


def _problems(rows: Sequence[Mapping[str, Any]]) -> str:
    raced = [r for r in rows if r.get("us")]
    modes = [n for n in _MODES if any(r["baselines_us"].get(n) for r in raced)]
    columns = ["us", *(_MODES[n] for n in modes), *_RATIOS, "error", "its error"]
    head = ["level", "problem", *columns, "notes"]
    lines = [line(head), line(["---:", "---"] + ["---:"] * len(columns) + ["---"])]
    for row in raced:
        times, ratios = row["baselines_us"], row["speedups"]
        lines.append(
            line(
                [
                    str(row["level"]),
                    row["problem"],
                    _us(row["us"]),
                    *(_us(times.get(n)) for n in modes),
                    *(cut(ratios.get(n)) for n in ("eager", "compile")),
                    cut(row.get("speedup")),
                    _error(row["rel_err"]),
                    _error(row["reference_rel_err"]),
                    _notes(row),
                ]
            )
        )
    return "\n".join(lines) if len(lines) > 2 else ""


def _notes(row: Mapping[str, Any]) -> str:
    """Returns notes on a row that its figures do not show."""
    notes = [row["degenerate"] and f"degenerate: {row['degenerate']}"]
    notes += ["its equations shrink" * bool(row["collapses"]), "; ".join(row.get("rounded", ()))]
    if not row["suite_passed"]:
        found = row["suite"]
        notes.append(
            f"suite {found['passed']}/{found['trials']}, "
            f"eager in f32 {found['passed_with_f32']}/{found['trials']}"
        )
    if plain := row.get("plain_kernels"):
        notes.append(f"{len(plain)} plain kernels")
    notes += ["wrong" * (not row["correct"])]
    return ", ".join(n for n in notes if n)


def _us(us: float | None) -> str:
    return f"{us:.1f}" if us else ""


def _error(error: float | None) -> str:
    return "-" if error is None else f"{error:.1e}"
