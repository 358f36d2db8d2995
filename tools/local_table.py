"""The tables of a race on the CPU cores of a machine: each kernel with PyTorch's modes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.markdown import cut, line, sizes_of

_WORDS = 2  # The first columns, which contain text.


def local(result: Mapping[str, Any]) -> list[str]:
    """Returns the origin of the file, its rows and its summary."""
    return [_origin(result), _rows(result), _summary(result)]


def _origin(result: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    return (
        f"`{result['command']}`, {result['date']}, {result['machine']}, {result['threads']} "
        f"threads, {versions}. Correct by device, times measured: each the median of "
        f"{result['rounds']} rounds, in brackets the fastest and the slowest round."
    )


def _rows(result: Mapping[str, Any]) -> str:
    baselines = list(result["rows"][0]["baselines_us"])
    head = ("kernel", "sizes", "us", *baselines, "fastest", "speed-up", "schedule")
    lines = [line(head), line(["---"] * _WORDS + ["---:"] * (len(head) - _WORDS))]
    for row in result["rows"]:
        sizes = sizes_of(row["sizes"])
        times = [_rounds(row["rounds_us"][who]) for who in ("ours", *baselines)]
        speedup = cut(row["speedup"])
        lines.append(line([row["kernel"], sizes, *times, row["fastest"], speedup, row["schedule"]]))
    return "\n".join(lines)


def _rounds(found: list[float]) -> str:
    middle = sorted(found)[len(found) // 2]
    return f"{middle:.0f} ({min(found):.0f}-{max(found):.0f})"


def _summary(result: Mapping[str, Any]) -> str:
    found = result["summary"]
    return (
        f"Over the fastest: geometric mean {cut(found['geometric_mean'])}, median "
        f"{cut(found['median'])}, from {cut(found['min'])} to {cut(found['max'])}; faster on "
        f"{found['faster']} of {found['rows']}."
    )
