"""The tables of a race between the backends of one target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tools.markdown import cut, line, sizes_of

_WORDS = 2  # The first columns, which contain text.
# Columns that only some files have.
_PYTORCH = ("eager", "compile", "reduce_overhead", "max_autotune")
_ROOFLINE = "roofline_us"  # Another such column.


def languages(result: Mapping[str, Any]) -> list[str]:
    """Returns the origin of the file, its rows and its summary."""
    first, *others = result["languages"]
    beside = [name for name in _PYTORCH if any(name in r for r in result["rows"])]
    more = [*beside, *_bound(result["rows"])]
    head = ("kernel", "sizes", first, *others, *more, "ratio", "registers", "shared memory")
    lines = [line(head), line(["---"] * _WORDS + ["---:"] * (len(head) - _WORDS))]
    for row in (r for r in result["rows"] if "library" not in r):
        sizes = sizes_of(row["sizes"])
        times = [_time(row[name]) for name in (first, *others)]
        times += [_time(row.get(name, {})) for name in beside]
        times += [f"{row[_ROOFLINE]:.2f}" for _ in _bound(result["rows"])]
        last = row[others[-1]]
        known = "us" in row[first] and "us" in last
        ratio = cut(row[first]["us"] / last["us"]) if known else "-"
        figures = [
            " / ".join(f"{row[name].get(figure, 0):.0f}" for name in (first, *others))
            for figure in ("registers", "shared_bytes")
        ]
        lines.append(line([row["kernel"], sizes, *times, ratio, *figures]))
    failures = [
        f"- `{row['kernel']}` in `{name}`: {row[name]['failure']}."
        for row in result["rows"]
        for name in (first, *others, *_PYTORCH)
        if "failure" in row.get(name, {})
    ]
    parts = [_origin(result), "\n".join(lines), *(["\n".join(failures)] if failures else [])]
    large = [r for r in result["rows"] if "library" in r]
    return [
        *parts,
        _summary(result, first, others),
        *(_large(large, first, others) if large else []),
    ]


def _large(rows: list[Mapping[str, Any]], first: str, others: list[str]) -> list[str]:
    """Lists the rows of large kernels, with PyTorch's function."""
    more = _bound(rows)
    head = ("kernel", "sizes", first, *others, "PyTorch", *more, "PyTorch / last", "its function")
    lines = [line(head), line(["---", "---", *["---:"] * (len(head) - 3), "---"])]
    for row in rows:
        sizes = sizes_of(row["sizes"])
        times = [_time(row[name]) for name in (first, *others, "library")]
        times += [f"{row[_ROOFLINE]:.2f}" for _ in more]
        ours, theirs = row[others[-1]], row["library"]
        ratio = cut(theirs["us"] / ours["us"]) if "us" in ours and "us" in theirs else "-"
        lines.append(line([row["kernel"], sizes, *times, ratio, f"`{theirs.get('function', '')}`"]))
    return ["\n".join(lines)]


def _origin(result: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    said = (
        f"`{result['command']}`, {result['date']}, {result['machine']}, driver {result['driver']}, "
        f"{versions}. Correct by device at all {result.get('checked', 'check')} sizes, microseconds measured with a "
        f"cold cache, medians; ratio: {result['languages'][0]} over {_last(result)}."
    )
    if by := result.get("built_by"):
        said += " Built on a machine without a GPU: " + ", ".join(f"`{n}` by {by[n]}" for n in by)
        said += "; the file has the sha256 of each cubin."
    if "schedules" in result:
        said += f" Schedules: those of `{result['schedules']}`."
    return said


def _last(result: Mapping[str, Any]) -> str:
    _, *others = result["languages"]
    return "the other" if len(others) == 1 else others[-1]


def _time(found: Mapping[str, Any]) -> str:
    return f"{found['us']:.1f}" if "us" in found else "failed"


def _bound(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns the column of roofline times, if a row has one."""
    return ["roofline"] if any(_ROOFLINE in row for row in rows) else []


def _summary(result: Mapping[str, Any], first: str, others: list[str]) -> str:
    parts = []
    for name in others:
        found = result["summary"][name]
        if found["geometric_mean"] is not None:
            mean, least = cut(found["geometric_mean"]), cut(found["min"])
            parts.append(f"`{name}` over `{first}`: geometric mean {mean}, least {least}.")
    return " ".join(parts)
