"""The tables of a contest: the fastest candidate of each row with PyTorch's functions, and all
candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tools.markdown import cut, line, sizes_of

_HEAD = ("kernel", "sizes", "candidate")


def contests(result: Mapping[str, Any]) -> list[str]:
    """Returns the origin of the file, its rows and their candidates."""
    rows = result["rows"]
    return [_origin(result), _rows(rows), _candidates(rows), *_failures(rows)]


def _rows(rows: Sequence[Mapping[str, Any]]) -> str:
    head = (
        *_HEAD,
        "us",
        "TFLOP/s",
        "fastest of PyTorch",
        "its us",
        "ratio",
        "aim",
        "error",
        "its error",
    )
    lines = [line(head), line(["---"] * len(_HEAD) + ["---:"] * (len(head) - len(_HEAD)))]
    for row in rows:
        good, fastest = row["correct"], row["fastest"]
        lines.append(
            line(
                [
                    row["kernel"],
                    _sizes(row),
                    row["candidate"] if good else "none is right",
                    f"{row['us']:.1f}" if good else "-",
                    f"{row['tflops']:.0f}" if good else "-",
                    f"`{fastest}`" if fastest else "-",
                    f"{row['baselines_us'][fastest]:.1f}" if fastest else "-",
                    cut(row["speedup"]),
                    str(row["aim"]),
                    f"{row['rel_err']:.2g}" if good else "-",
                    f"{row['reference_rel_err']:.2g}" if good else "-",
                ]
            )
        )
    return "\n".join(lines)


def _candidates(rows: Sequence[Mapping[str, Any]]) -> str:
    """Lists the times of all candidates and functions, one line for each row."""
    lines = []
    for row in rows:
        ours = [f"{c['label']} {_time(c)}" for c in row["candidates"]]
        theirs = [f"`{n}` {us:.1f}" for n, us in row["baselines_us"].items() if us]
        lines.append(f"- {row['kernel']} {_sizes(row)}: {', '.join(ours)}; {', '.join(theirs)}")
    return "\n".join(["All candidates and functions, us:", "", *lines])


def _failures(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    found = [
        f"- `{c['label']}` of {row['kernel']} {_sizes(row)}: {c['reason']}."
        for row in rows
        for c in row["candidates"]
        if not c["correct"]
    ]
    found += [
        f"- `{name}` of {row['kernel']} {_sizes(row)}: {why}."
        for row in rows
        for name, why in row["failures"].items()
    ]
    return ["\n".join(["What failed:", "", *found])] if found else []


def _time(candidate: Mapping[str, Any]) -> str:
    return f"{candidate['us']:.1f}" if candidate["correct"] else "failed"


def _sizes(row: Mapping[str, Any]) -> str:
    return sizes_of(row["shape"])


def _origin(result: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    by = ", ".join(f"`{name}` by {tool}" for name, tool in result["built_by"].items())
    return (
        f"`{result['command']}`, {result['date']}, {result['machine']}, driver {result['driver']}, "
        f"{versions}. Built on a machine without a GPU: {by}; the file has the sha256 of each cubin. "
        f"Schedules: candidates of `{result['schedules']}`. Right at all check sizes and at the raced ones by "
        "the device, microseconds measured with a cold cache, medians; ratio: the fastest of PyTorch over ours."
    )
