"""The table of what a check costs with each backend of one target."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any

from tools.markdown import line


def check_times(result: Mapping[str, Any]) -> list[str]:
    """Returns the origin of the file, its rows and its summary. Ratios are rounded up to two
    digits."""
    first, *others = result["checked_through"]
    head = ("kernel", "check sizes", first, *others, *(f"{name} / {first}" for name in others))
    lines = [line(head), line(["---"] + ["---:"] * (len(head) - 1))]
    for row in result["rows"]:
        times = [_seconds(row[name]) for name in (first, *others)]
        ratios = [_ratio(row[first], row[name]) for name in others]
        lines.append(line([row["kernel"], str(len(row["checks"])), *times, *ratios]))
    return [_origin(result), "\n".join(lines), _summary(result, first, others)]


def _origin(result: Mapping[str, Any]) -> str:
    numbers = [f"{name} {number}" for name, number in result["versions"].items()]
    versions = ", ".join([*numbers, *result["toolchains"]])
    return (
        f"`{result['command']}`, {result['date']}, one core of {result['machine']}, {versions}. Seconds "
        f"of processor time, the least of {result['rounds_of_checks']} rounds."
    )


def _seconds(found: Mapping[str, Any]) -> str:
    return f"{found['cpu_s']:.2f}" if "cpu_s" in found else "failed"


def _ratio(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    if "cpu_s" not in one or "cpu_s" not in other:
        return "-"
    return _up(other["cpu_s"] / one["cpu_s"])


def _up(ratio: float) -> str:
    return f"{ceil(100 * ratio) / 100:.2f}"


def _summary(result: Mapping[str, Any], first: str, others: list[str]) -> str:
    parts = []
    for name in others:
        found = result["summary"][name]
        if found["all"] is not None:
            whole, mean, most = (_up(found[key]) for key in ("all", "geometric_mean", "max"))
            parts.append(
                f"`{name}` takes {whole} of `{first}`'s time for all kernels together; geometric mean "
                f"{mean}, most {most}."
            )
    return " ".join(parts)
