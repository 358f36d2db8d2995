"""The tables of a device suite's result file: each test, and the gain of the searches of
problems."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tools.markdown import cut, line

_SEARCHED = "test_a_problem"
_JUDGED = "test_a_solution_passes_the_suites_own_judge"
_PROBLEMS = (
    "problem",
    "kernels",
    "first, us",
    "best, us",
    "gain",
    "candidates that failed",
    "its judge",
    "`ModelNew`, mean ms",
    "PyTorch, mean ms",
)
_NAMED = re.compile(r"(?P<file>[\w/]+)\.py::(?P<test>\w+)(?:\[(?P<case>.*)\])?$")


def device(result: Mapping[str, Any]) -> list[str]:
    """Returns the origin of the file, the problems and the other tests."""
    return [_origin(result), _problems(result["rows"]), _others(result["rows"])]


def _origin(result: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    counts = ", ".join(f"{result[name]} {name}" for name in ("passed", "failed", "skipped"))
    return (
        f"`{result['command']}`, {result['date']}, {result['machine']}, driver "
        f"{result['driver']}, {versions}: {counts}. Correct by device, times measured."
    )


def _named(row: Mapping[str, Any]) -> re.Match[str]:
    found = _NAMED.match(row["test"])
    assert found, row["test"]
    return found


def _problems(rows: Sequence[Mapping[str, Any]]) -> str:
    """Lists problems of KernelBench: sums over the kernels of a problem, and the verdict of its own
    judge."""
    judged = {_named(r)["case"]: r.get("judge") for r in rows if _named(r)["test"] == _JUDGED}
    lines = [line(_PROBLEMS), line(["---", *["---:"] * 5, "---", "---:", "---:"])]
    for row in rows:
        name = _named(row)
        if name["test"] == _SEARCHED:
            lines.append(line([name["case"], *_searched(row), *_verdict(judged[name["case"]])]))
    return "\n".join(lines)


def _searched(row: Mapping[str, Any]) -> list[str]:
    if "gain" not in row:
        return ["-"] * 5
    times = [f"{row[name]:.1f}" for name in ("first_us", "best_us")]
    return [str(row["kernels"]), *times, cut(row["gain"]), str(len(row["failures"]))]


def _verdict(said: Mapping[str, Any] | None) -> list[str]:
    if said is None:
        return ["-"] * 3
    verdict = f"correct {said['trials']}" if said["correct"] else "not correct"
    return [verdict, *(_times(said, side) for side in ("", "reference_"))]


def _times(said: Mapping[str, Any], side: str) -> str:
    """Formats the mean, with the smallest and the largest if the judge reports them."""
    spread = said.get(f"{side}times_ms")
    more = f" ({spread['min']:.3g} to {spread['max']:.3g})" if spread else ""
    return f"{said[f'{side}mean_ms']:.3g}{more}"


def _others(rows: Sequence[Mapping[str, Any]]) -> str:
    """Lists every other test with its command."""
    lines = [line(["test", "outcome", "command"]), line(["---"] * 3)]
    for row in rows:
        name = _named(row)
        if name["test"] not in (_SEARCHED, _JUDGED):
            case = f" ({name['case']})" if name["case"] else ""
            said = f"`{row['command']}`" if "command" in row else ""
            lines.append(line([name["test"].removeprefix("test_") + case, row["outcome"], said]))
    return "\n".join(lines)
