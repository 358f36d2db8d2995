"""The table that compares our search with Helion's autotuner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.markdown import line

_HEAD = (
    "kernel",
    "sizes",
    "dtype",
    "ours, us",
    "Helion, us",
    "times as fast",
    "its form",
    "our seconds",
    "its seconds",
)
_LEFT = 3  # The first columns, which contain text.


def autotuners(result: Mapping[str, Any]) -> list[str]:
    """Returns the origin of the file, one line for each kernel, the failures and Helion's settings.

    Ratios are truncated to two digits.
    """
    rows = result["rows"]
    lines = [line(_HEAD), line(["---"] * _LEFT + ["---:"] * (len(_HEAD) - _LEFT))]
    lines += [line(_cells(row)) for row in rows]
    failed = [f"- {row['kernel']}: {row['reason']}" for row in rows if "reason" in row]
    return [
        _origin(result),
        "\n".join(lines),
        *(["\n".join(failed)] if failed else []),
        _told(rows),
    ]


def _origin(result: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    return (
        f"`{result['command']}`, {result['date']}, {result['machine']}, driver {result['driver']}, {versions}. "
        "Correct by device, times measured. Seconds are of the whole of a search, with its start."
    )


def _cells(row: Mapping[str, Any]) -> list[str]:
    sizes = " ".join(f"{name}={size}" for name, size in row["shape"].items())
    words = [row["kernel"], sizes, row["dtype"]]
    if "us" not in row:
        return [*words, *["-"] * (len(_HEAD) - _LEFT)]
    ratio = int(100 * row["speedup"]) / 100
    theirs = row["helion"][row["form"]]["tuning_s"]
    times = [f"{row['us']:.1f}", f"{row['helion_us']:.1f}", f"{ratio:.2f}", f"`{row['form']}`"]
    return [*words, *times, f"{row['ours']['wall_s']:.0f}", f"{theirs:.0f}"]


def _told(rows: list[Mapping[str, Any]]) -> str:
    """Describes Helion's settings, which are equal for all rows of a file."""
    made = next((row for row in rows if "helion_settings" in row), None)
    if made is None:
        return "Helion did not run."
    settings = ", ".join(f"`{name}={value}`" for name, value in made["helion_settings"].items())
    return f"Helion {made['helion_version']}, with {settings}."
